package boards

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/dashboards/expand"
)

// want is what each statement gives: names and ClickHouse types.
var want = map[string]string{
	"evenhand-bias-rates/annotation/Breaches":                        "time DateTime64(3, 'UTC'), timeEnd DateTime64(3), title String, text String, tags String",
	"evenhand-bias-rates/annotation/Models":                          "time DateTime('UTC'), title String, text LowCardinality(String), tags String",
	"evenhand-bias-rates/annotation/Rules":                           "time DateTime64(3, 'UTC'), title String, text String, tags String",
	"evenhand-bias-rates/stat/Analysed interactions":                 "analysed UInt64",
	"evenhand-bias-rates/stat/Bias detected":                         "rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/stat/Coverage":                              "coverage Float64",
	"evenhand-bias-rates/stat/Flagged":                               "rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/stat/In other languages":                    "rate Float64",
	"evenhand-bias-rates/table/By application":                       "app LowCardinality(String), k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/table/By model":                             "model LowCardinality(String), k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/table/Latest flagged interactions":          "time DateTime64(3, 'UTC'), tenant String, domain LowCardinality(String), app LowCardinality(String), model LowCardinality(String), event_id String, kinds String, severity UInt8, score Float64, confidence Float64, action String, reviewed String, decision String",
	"evenhand-bias-rates/table/Rate by characteristic and domain":    "domain LowCardinality(String), characteristic LowCardinality(String), rate Float64",
	"evenhand-bias-rates/table/Rate by characteristic and model":     "model LowCardinality(String), characteristic LowCardinality(String), rate Float64",
	"evenhand-bias-rates/table/Rates with intervals":                 "domain LowCardinality(String), characteristic LowCardinality(String), k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/table/Rules that fired most":                "rule String, kind LowCardinality(String), severity String, interactions UInt64, findings UInt64",
	"evenhand-bias-rates/timeseries/$characteristic":                 "time DateTime('UTC'), rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/timeseries/Bias detected by characteristic": "time DateTime('UTC'), characteristic String, rate Float64",
	"evenhand-bias-rates/timeseries/Bias detected over time":         "time DateTime('UTC'), rate Float64, lower Float64, upper Float64",
	"evenhand-bias-rates/variable/app":                               "app LowCardinality(String)",
	"evenhand-bias-rates/variable/characteristic":                    "characteristic String",
	"evenhand-bias-rates/variable/domain":                            "domain LowCardinality(String)",
	"evenhand-bias-rates/variable/model":                             "model LowCardinality(String)",
	"evenhand-bias-rates/variable/tenant":                            "tenant_id String",
	"evenhand-judge/stat/Agreement with the rules":                   "rate Float64, lower Float64, upper Float64",
	"evenhand-judge/stat/Answered":                                   "coverage Float64",
	"evenhand-judge/stat/Cost":                                       "usd Float64",
	"evenhand-judge/stat/Given up":                                   "abandoned UInt64",
	"evenhand-judge/stat/Injection attempts":                         "attempts UInt64",
	"evenhand-judge/stat/Judged":                                     "judged UInt64",
	"evenhand-judge/stat/Time of an answer, p95":                     "seconds Float64",
	"evenhand-judge/stat/To be asked again":                          "waiting UInt64",
	"evenhand-judge/table/Found by kind":                             "kind String, k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-judge/table/Judged by domain":                          "domain LowCardinality(String), k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-judge/table/Judges":                                    "judge String, verdicts UInt64, done UInt64, questions UInt64, tokens_read UInt64, tokens_written UInt64, usd Float64, usd_a_thousand Float64, p50 Float64, p95 Float64",
	"evenhand-judge/table/Latest findings":                           "time DateTime('UTC'), tenant String, event_id String, verdict String, kinds String, confidence Float64, judge String",
	"evenhand-judge/table/Without a verdict":                         "status String, reason String, interactions UInt64, last DateTime('UTC')",
	"evenhand-judge/timeseries/Beside the rules":                     "time DateTime('UTC'), beside String, interactions UInt64",
	"evenhand-judge/timeseries/Bias, DEI and offensive language":     "time DateTime('UTC'), bias Float64, dei Float64, offensive Float64",
	"evenhand-judge/timeseries/Cost by judge":                        "time DateTime('UTC'), judge String, usd Float64",
	"evenhand-judge/timeseries/Time of an answer":                    "time DateTime('UTC'), p50 Float64, p95 Float64",
	"evenhand-judge/timeseries/Tokens":                               "time DateTime('UTC'), read UInt64, written UInt64",
	"evenhand-judge/timeseries/Verdicts":                             "time DateTime('UTC'), verdict String, interactions UInt64",
	"evenhand-judge/variable/tenant":                                 "tenant_id String",
	"evenhand-pipeline/stat/Active parts":                            "parts UInt64",
	"evenhand-pipeline/stat/Age when stored, p95":                    "seconds Float64",
	"evenhand-pipeline/stat/Cost":                                    "usd Float64",
	"evenhand-pipeline/stat/Coverage":                                "coverage Float64",
	"evenhand-pipeline/stat/Dead letters":                            "dead_letters UInt64",
	"evenhand-pipeline/stat/Since the newest batch":                  "seconds Int64",
	"evenhand-pipeline/table/Active parts":                           "table String, parts UInt64, partitions UInt64, most_merged UInt32, total_rows UInt64, bytes UInt64",
	"evenhand-pipeline/table/Cost by application":                    "tenant String, app String, model String, interactions UInt64, usd Float64, usd_a_thousand Float64",
	"evenhand-pipeline/table/Dead letters":                           "reason LowCardinality(String), tenant String, messages UInt64, first DateTime64(3, 'UTC'), last DateTime64(3, 'UTC'), bytes UInt64",
	"evenhand-pipeline/table/Jobs":                                   "job LowCardinality(String), last_status String, last_start DateTime64(3, 'UTC'), seconds Float64, last_success Nullable(DateTime64(3, 'UTC')), succeeded UInt64, failed UInt64",
	"evenhand-pipeline/table/Partitions":                             "topic String, epoch Int32, partition Int32, newest_offset Int64, newest_record DateTime64(3, 'UTC'), written DateTime64(3, 'UTC'), stored UInt64, dead_letters UInt64, lost Int64",
	"evenhand-pipeline/timeseries/Age when stored":                   "time DateTime('UTC'), p50 Float64, p95 Float64, slowest Float64",
	"evenhand-pipeline/timeseries/Analysis status":                   "time DateTime('UTC'), status LowCardinality(String), interactions UInt64",
	"evenhand-pipeline/timeseries/Batches":                           "time DateTime('UTC'), batches UInt64, rows_a_batch Float64",
	"evenhand-pipeline/timeseries/Cost by model":                     "time DateTime('UTC'), model LowCardinality(String), usd Float64",
	"evenhand-pipeline/timeseries/Dead letters by reason":            "time DateTime('UTC'), reason LowCardinality(String), messages UInt64",
	"evenhand-pipeline/timeseries/Lag":                               "time DateTime('UTC'), records Int64, worst_partition Int64",
	"evenhand-pipeline/timeseries/Runs of jobs":                      "time DateTime('UTC'), status LowCardinality(String), runs UInt64",
	"evenhand-pipeline/timeseries/Throughput":                        "time DateTime('UTC'), stored Float64, dead_letters Float64",
	"evenhand-pipeline/variable/app":                                 "app LowCardinality(String)",
	"evenhand-pipeline/variable/domain":                              "domain LowCardinality(String)",
	"evenhand-pipeline/variable/model":                               "model LowCardinality(String)",
	"evenhand-pipeline/variable/tenant":                              "tenant_id String",
	"evenhand-remediation/stat/Open breaches":                        "open UInt64",
	"evenhand-remediation/stat/Open without a ticket":                "breaches UInt64",
	"evenhand-remediation/stat/Time to detect":                       "seconds Float64",
	"evenhand-remediation/stat/Time to mitigate":                     "seconds Float64",
	"evenhand-remediation/stat/Time to ticket":                       "seconds Float64",
	"evenhand-remediation/table/By tier and domain":                  "tier LowCardinality(String), domain LowCardinality(String), open UInt64, mitigated UInt64, resolved UInt64",
	"evenhand-remediation/table/History":                             "changed DateTime64(3, 'UTC'), tenant String, domain LowCardinality(String), kind String, rules LowCardinality(String), state LowCardinality(String), reason LowCardinality(String), tier LowCardinality(String), severity UInt8, k UInt64, n Nullable(UInt64), rate Nullable(Float64), baseline Nullable(Float64), opened DateTime64(3, 'UTC'), top_rules String, mitigation LowCardinality(String), example String, ticket String, ticket_url String, from_ms String, to_ms String, breach String, board String",
	"evenhand-remediation/table/Open now":                            "opened DateTime64(3, 'UTC'), tenant String, domain LowCardinality(String), kind String, rules LowCardinality(String), state LowCardinality(String), reason LowCardinality(String), tier LowCardinality(String), severity UInt8, k UInt64, n Nullable(UInt64), rate Nullable(Float64), baseline Nullable(Float64), changed DateTime64(3, 'UTC'), top_rules String, mitigation LowCardinality(String), example String, ticket String, ticket_url String, from_ms String, to_ms String, breach String, board String",
	"evenhand-remediation/table/Tickets":                             "state LowCardinality(String), target LowCardinality(String), action LowCardinality(String), tickets UInt64, most_attempts UInt32, oldest_unsent Nullable(DateTime64(3, 'UTC'))",
	"evenhand-remediation/table/Trouble with tickets":                "error LowCardinality(String), target LowCardinality(String), state LowCardinality(String), tickets UInt64, most_attempts UInt32, next_attempt DateTime64(3, 'UTC')",
	"evenhand-remediation/timeseries/Breaches opened":                "time DateTime('UTC'), tier LowCardinality(String), breaches UInt64",
	"evenhand-remediation/timeseries/Time to send":                   "time DateTime('UTC'), p50 Float64, slowest Float64",
	"evenhand-remediation/variable/domain":                           "domain LowCardinality(String)",
	"evenhand-remediation/variable/tenant":                           "tenant_id String",
	"evenhand-safety/annotation/Breaches":                            "time DateTime64(3, 'UTC'), timeEnd DateTime64(3), title String, text String, tags String",
	"evenhand-safety/annotation/Models":                              "time DateTime('UTC'), title String, text LowCardinality(String), tags String",
	"evenhand-safety/annotation/Rules":                               "time DateTime64(3, 'UTC'), title String, text String, tags String",
	"evenhand-safety/stat/Analysed interactions":                     "analysed UInt64",
	"evenhand-safety/stat/Coverage":                                  "coverage Float64",
	"evenhand-safety/stat/Gated":                                     "rate Float64, lower Float64, upper Float64",
	"evenhand-safety/stat/Unsafe":                                    "rate Float64, lower Float64, upper Float64",
	"evenhand-safety/table/Kinds with intervals":                     "kind LowCardinality(String), k UInt64, n UInt64, rate Float64, lower Float64, upper Float64",
	"evenhand-safety/table/Rate by kind and domain":                  "domain LowCardinality(String), kind LowCardinality(String), rate Float64",
	"evenhand-safety/timeseries/Actions that need approval":          "time DateTime('UTC'), kind String, rate Float64",
	"evenhand-safety/timeseries/DEI, wording and other kinds":        "time DateTime('UTC'), kind String, rate Float64",
	"evenhand-safety/timeseries/Findings by severity":                "time DateTime('UTC'), severity_name String, interactions UInt64",
	"evenhand-safety/timeseries/Safety by category":                  "time DateTime('UTC'), kind String, rate Float64",
	"evenhand-safety/timeseries/Suggested mitigations":               "time DateTime('UTC'), mitigation LowCardinality(String), interactions UInt64",
	"evenhand-safety/timeseries/Unsafe over time":                    "time DateTime('UTC'), rate Float64, lower Float64, upper Float64",
	"evenhand-safety/variable/app":                                   "app LowCardinality(String)",
	"evenhand-safety/variable/domain":                                "domain LowCardinality(String)",
	"evenhand-safety/variable/model":                                 "model LowCardinality(String)",
	"evenhand-safety/variable/tenant":                                "tenant_id String",
}

// texts are the tables that no dashboard reads.
var texts = regexp.MustCompile(`interaction_texts|interaction_users|texts_held|llm_interaction_audit|given_id|detail\b`)

// TestStatements runs every panel's, variable's and annotation's statement as Grafana's user, for every
// choice of variables, over hours and over days.
func TestStatements(t *testing.T) {
	conn, cells := filled(t)
	now := time.Now().Add(time.Second) // a range ends with a whole second, and rows were written in this one
	ranges := map[string]time.Duration{"a day": 24 * time.Hour, "60 days": 60 * 24 * time.Hour}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range all {
		for _, s := range (Board{b.UID, committed(t, b.UID)}).Statements() {
			name := b.UID + "/" + s.Kind + "/" + s.Title
			seen[name] = true
			if texts.MatchString(s.SQL) {
				t.Errorf("%s reads what dashboards do not show", name)
			}
			for choice, variables := range choices() {
				if strings.HasPrefix(s.Title, "$") && choice != "one" {
					continue // repeated: each panel has one value
				}
				for during, length := range ranges {
					t.Run(strings.Join([]string{name, choice, during}, "/"), func(t *testing.T) {
						sql, err := expand.Statement(s.SQL, expand.View{From: now.Add(-length), To: now, Variables: variables})
						if err != nil {
							t.Fatal(err)
						}
						got := run(t, conn, sql)
						if got.columns != want[name] {
							t.Errorf("columns\n%q: %q,\nwant\n%q", name, got.columns, want[name])
						}
						if len(got.rows) == 0 && !mayBeEmpty[name+"/"+choice] && !mayBeEmpty[name+"/"+choice+"/"+during] {
							t.Errorf("no rows:\n%s", sql)
						}
					})
				}
			}
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("%s is no statement of a board", name)
		}
	}
	for choice, v := range choices() {
		for during, length := range ranges {
			t.Run("figures/"+choice+"/"+during, func(t *testing.T) {
				figures(t, conn, cells, expand.View{From: now.Add(-length), To: now, Variables: v})
			})
		}
	}
}

// mayBeEmpty are the statements that find nothing for one tenant's one application.
var mayBeEmpty = map[string]bool{
	"evenhand-bias-rates/annotation/Models/one":           true,
	"evenhand-safety/annotation/Models/one":               true,
	"evenhand-remediation/stat/Time to mitigate/one":      true,
	"evenhand-remediation/table/Trouble with tickets/one": true,
}

// number gives a column's number, nil as not a number.
func (f frame) number(row int, column string) float64 {
	v := reflect.ValueOf(f.value(row, column))
	switch {
	case v.CanFloat():
		return v.Float()
	case v.CanUint():
		return float64(v.Uint())
	case v.CanInt():
		return float64(v.Int())
	}
	return math.NaN()
}

func (f frame) value(row int, column string) any {
	return reflect.ValueOf(f.rows[row][slices.Index(f.names, column)]).Elem().Interface()
}

// find gives the row whose columns have these values.
func (f frame) find(t *testing.T, where map[string]any) int {
	t.Helper()
	for i := range f.rows {
		ok := true
		for column, v := range where {
			ok = ok && reflect.DeepEqual(f.value(i, column), v)
		}
		if ok {
			return i
		}
	}
	t.Fatalf("no row %v among %d", where, len(f.rows))
	return 0
}
