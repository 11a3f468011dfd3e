// Package clients runs real clients of language models against the real product: what an application's author types,
// a model that answers on this machine, `evenhand up` in a process of its own, and the rows that arrive in its store.
//
// Each script here stands word for word on a page that docs/connect.md names; a test compares them. The clients are installed
// by install.sh at pinned versions. Where they are not there the test is skipped; in continuous integration it fails.
package clients
