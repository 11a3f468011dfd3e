// Package failpoint names the moments at which the crash tests end a process by kill -9.
//
// A program calls [Hit] at each of them. Without the build tag "failpoints" Hit is an empty function
// that the compiler removes: the binary that people run holds no way to end it. With the tag, the
// variables FAILPOINT (a point, "name" or "name:of") and FAILPOINT_SKIP (how many hits pass first,
// 0 when unset) arm one point, and the process kills itself there as the kernel would: nothing is
// flushed, no deferred call runs. tools/crash builds and drives such a binary.
package failpoint

// The points of the hot path, in the order in which a batch meets them.
const (
	Decoded       = "decoded"        // a chunk is decoded and analysed, not yet in a batch
	Inserted      = "inserted"       // of a table: its insert is acknowledged, the next one is not sent
	BeforeMarker  = "before_marker"  // every table is in, the commit marker is not sent
	AfterMarker   = "after_marker"   // the marker is acknowledged
	DeadLetters   = "dead_letters"   // the broker has the dead letters, nobody noted it yet
	BeforePublish = "before_publish" // nothing of the batch is in the stream
	AfterPublish  = "after_publish"  // all of it is
	BeforeCommit  = "before_commit"  // the group's position is still the old one
	AfterCommit   = "after_commit"   // it is the new one
	Rebalance     = "rebalance"      // the generation ended, its last batch may be under way
	Republished   = "republished"    // a range found in the store was published again, not committed
)

// The points of joining calls (package join), which only its own tests arm.
const (
	CallsClosed    = "calls_closed"    // groups are closed, nothing of them is told
	CallsTold      = "calls_told"      // the broker has their events, no mark says so
	CallsMarked    = "calls_marked"    // the mark is acknowledged, the position is the old one
	CallsCommitted = "calls_committed" // it is the new one
)

// Calls lists the points of joining calls.
func Calls() []string { return []string{CallsClosed, CallsTold, CallsMarked, CallsCommitted} }

// All lists every point of the hot path as FAILPOINT takes it.
func All() []string {
	return []string{
		Decoded,
		Inserted + ":interaction_texts", Inserted + ":interaction_users", Inserted + ":verdicts", Inserted + ":interactions",
		Inserted + ":audit_current", Inserted + ":rejected",
		BeforeMarker, AfterMarker, DeadLetters, BeforePublish, AfterPublish, BeforeCommit, AfterCommit, Rebalance, Republished,
	}
}
