package engine

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/evenhand/evenhand/internal/chconn"
)

//go:embed config.xml.tmpl users.xml.tmpl
var templateFiles embed.FS

// closed stands in the way of the scalar function file(), which asks for no grant and, in this library, heeds no
// user_files_path: whoever may say SELECT 1 could read passwords and the tables' own files. Of two functions of one
// name the engine takes the one that is made in SQL; no statement can make or drop one over its own, but
// from its folder it takes them. See Engine.greet, which starts nothing without it.
//
//go:embed function_file.sql
var closed []byte

var templates = template.Must(template.New("").Funcs(template.FuncMap{"xml": xmlText}).ParseFS(templateFiles, "*.tmpl"))

// layout names what lies in the data folder.
type layout struct{ dir string }

func (l layout) lock() string         { return filepath.Join(l.dir, "lock") }
func (l layout) data() string         { return filepath.Join(l.dir, "data") }
func (l layout) backups() string      { return filepath.Join(l.dir, "backups") }
func (l layout) systemLogs() string   { return filepath.Join(l.data(), "data", "system") }
func (l layout) functions() string    { return filepath.Join(l.data(), "user_defined") }
func (l layout) log() string          { return filepath.Join(l.dir, "log", "engine.log") }
func (l layout) errorLog() string     { return filepath.Join(l.dir, "log", "engine.err.log") }
func (l layout) config() string       { return filepath.Join(l.dir, "config.xml") }
func (l layout) users() string        { return filepath.Join(l.dir, "users.xml") }
func (l layout) ports() string        { return filepath.Join(l.dir, "ports.json") }
func (l layout) secret(u User) string { return filepath.Join(l.dir, string(u)+".password") }

// prepare makes the folders, the passwords that are not there yet, both configuration files and what closes file(),
// all of them readable by the owner only, and returns the passwords by user.
func (l layout) prepare(o Options) (map[User]string, error) {
	for _, dir := range []string{l.data(), l.functions(), l.backups(), filepath.Dir(l.log())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	passwords := make(map[User]string)
	users := []User{Writer, Reader, Grafana, API}
	for _, tenant := range o.Tenants {
		users = append(users, GrafanaOf(tenant))
	}
	for _, user := range users {
		p, err := password(l.secret(user))
		if err != nil {
			return nil, err
		}
		passwords[user] = p
	}
	if err := replace(filepath.Join(l.functions(), "function_file.sql"), closed); err != nil {
		return nil, err
	}
	err := write(l.config(), "config.xml.tmpl", map[string]any{
		"Log": l.log(), "ErrorLog": l.errorLog(), "Users": l.users(), "Backups": l.backups(),
		"Silent":      []string{"executeQuery", "TCPHandler", "HTTPHandler", "DynamicQueryHandler", "PredefinedQueryHandler"},
		"Noisy":       []string{"BackgroundSchedulePool/BgSchPool", "BackgroundSchedulePool/BgStrmSchPool", "MergeMutateSelectedEntry"},
		"MemoryBytes": o.MemoryBytes, "MarkCacheBytes": o.MemoryBytes / 32,
	})
	if err != nil {
		return nil, err
	}
	type account struct {
		User    User
		Hash    string
		Profile string
		Hidden  []string // tables of ours that it may not read
		System  []string // tables of the system that it may read, as far as they tell of what it may read
		// Of an account that sees one tenant's rows: which, in SQL, what it may read, and which of these it sees in part.
		Filter           string
		Tables, Filtered []string
		Database         string // where these are
	}
	readers := []account{{User: Reader, Hash: hash(passwords[Reader]), Profile: "reader"}, {User: Grafana, Hash: hash(passwords[Grafana]), Profile: "dashboard", Hidden: o.Private, System: []string{"parts"}}}
	readers = append(readers, account{User: API, Hash: hash(passwords[API]), Profile: "api",
		Filter: chconn.TenantPolicy, Tables: slices.Concat(o.Common, o.Bound), Filtered: o.Bound, Database: Database})
	for _, tenant := range o.Tenants {
		readers = append(readers, account{User: GrafanaOf(tenant), Hash: hash(passwords[GrafanaOf(tenant)]), Profile: "dashboard",
			Filter: "tenant_id = '" + tenant + "'", Tables: slices.Concat(o.Shared, o.Filtered), Filtered: o.Filtered, Database: TenantDatabase})
	}
	return passwords, write(l.users(), "users.xml.tmpl", map[string]any{
		"Writer":            hash(passwords[Writer]),
		"Readers":           readers,
		"ReaderMemoryBytes": o.MemoryBytes / 2,
		"Files": []string{"format_schema", "format_schema_source", "output_format_schema", "format_template_row", "format_template_resultset",
			"input_format_record_errors_file_path", "format_avro_schema_registry_url", "allow_experimental_ai_functions"},
		"Engines": []string{"Atomic", "Memory", "Null", "MergeTree", "ReplacingMergeTree", "AggregatingMergeTree", "SummingMergeTree"},
	})
}

// password reads the secret kept in the file, or makes one and keeps it.
func password(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		if s := trim(b); len(s) >= 32 {
			return s, os.Chmod(path, 0o600)
		}
		return "", fmt.Errorf("%s holds no password; delete it, and a new one is made", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := make([]byte, 24)
	_, _ = rand.Read(secret) // never fails: crypto/rand ends the program instead
	s := hex.EncodeToString(secret)
	return s, replace(path, []byte(s+"\n"))
}

func trim(b []byte) string { return strings.TrimSpace(string(b)) }

func hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

func write(path, name string, values any) error {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, values); err != nil {
		return err
	}
	return replace(path, b.Bytes())
}

// replace writes a file whole or not at all, readable by its owner only.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // made 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func xmlText(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
