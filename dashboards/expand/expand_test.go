package expand

import (
	"strings"
	"testing"
	"time"
)

func TestStatement(t *testing.T) {
	v := View{From: time.Unix(1000, 0), To: time.Unix(1000+3600*600, 0), Variables: map[string][]string{"tenant": {"acme", "o'neil"}, "model": {All}}}
	for in, want := range map[string]string{
		"SELECT 1":                     "SELECT 1",
		"a IN (${tenant:singlequote})": `a IN ('acme','o\'neil')`,
		"$__conditionalAll(a IN (${tenant:singlequote}), $tenant) AND 1":     `a IN ('acme','o\'neil') AND 1`,
		"$__conditionalAll(f(a, b) IN (${model:singlequote}), $model) AND 1": "1=1 AND 1",
		"$__conditionalAll(a IN (${model:singlequote}), $model) AND 1":       "1=1 AND 1",
		"a IN (${model:singlequote})":                                        "",
		"$__timeFilter(a) AND b":                                             "a >= toDateTime(1000) AND a <= toDateTime(2161000) AND b",
		"$__timeInterval(toDateTime(a))":                                     "toStartOfInterval(toDateTime(toDateTime(a)), INTERVAL 3600 second)",
		"$__fromTime $__toTime $__interval_s":                                "toDateTime(1000) toDateTime(2161000) 3600",
		"$__from":                                                            "", "${unknown:singlequote}": "", "$tenant": "", "$__timeFilter(a": "",
	} {
		got, err := Statement(in, v)
		if (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: %q (%v), want %q", in, got, err, want)
		}
	}
	v.MinStep = 2 * time.Hour
	if got, err := Statement("$__interval_s", v); err != nil || got != "7200" {
		t.Error(got, err)
	}
	if got, _ := Statement("${tenant:singlequote}", v); strings.Contains(got, "$") {
		t.Error(got)
	}
}
