package boards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Metrics is the type of the data source of the board of doors.
const Metrics = "prometheus"

// doors shows what only the processes know and Prometheus collects from their /metrics: decisions in line, calls on
// their way to become events, the judge's lane, gates, queues. It has a board of its own, for not everybody has Prometheus.
func doors() *builder {
	d := newBoard("Evenhand: doors").Description("Guard, gateway, the judge, gates, joining of calls and queues, as the processes' /metrics tell Prometheus").Tags([]string{"evenhand", "doors"}).
		Version(1).Editable().Timezone("utc").Refresh("1m").Time("now-24h", "now").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("prometheus").Label("Prometheus").Type(Metrics)).
		Link(dashboard.NewDashboardLinkBuilder("Evenhand").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"evenhand"}).IncludeVars(true).KeepTime(true))
	d.WithRow(dashboard.NewRowBuilder("Guard and gateway"))
	with(d,
		metric("Decisions of the guard", "A second, by door and action; failed: nothing could be decided", "reqps", series{"{{door}} {{action}}", each("evenhand_guard_decisions_total", "door, action")}),
		metric("Time of a decision", "By door; waiting for people is left out", seconds, quantiles("evenhand_guard_seconds", "door")...),
		metric("Calls through the gateway", "A second, by what became of them; unchecked: the guard could not look", "reqps", series{"{{upstream}} {{action}}", each("evenhand_gateway_requests_total", "upstream, action")}),
		metric("Time that the gateway adds", "Beside waiting for the provider and for people", seconds, quantiles("evenhand_gateway_added_seconds", "")...),
		metric("Events of guard and gateway", "A second, by outcome; lost: alarm on any", "reqps", series{"guard {{queue}} {{outcome}}", each("evenhand_guard_queue_total", "queue, outcome")}, series{"gateway {{outcome}}", each("evenhand_gateway_events_total", "outcome")}),
		metric("Waiting for the log", "Audit events of the guard that the log has not acknowledged", count, series{"{{queue}}", "sum by (queue) (evenhand_guard_queue_waiting)"}),
	)
	d.WithRow(dashboard.NewRowBuilder("Calls of other formats"))
	with(d,
		metric("Parts and calls", "A second: what clients told, and the events made of it", "reqps", series{"parts {{format}} {{kind}}", each("evenhand_call_parts_total", "format, kind")}, series{"calls {{format}}", each("evenhand_calls_total", "format")}),
		metric("Open groups", "Groups of parts that wait for company", count, series{"groups", "sum(evenhand_call_groups_open)"}),
		metric("Late and forced", "In an interval: parts that came too late, and groups told early for want of room", count, series{"late, {{outcome}}", told("evenhand_call_parts_late_total", "outcome")}, series{"told early", "sum(increase(evenhand_call_flushes_forced_total[$__rate_interval]))"}),
		metric("Calls without texts", "In an interval: capture of content is off in a service, which the log names, and nothing is judged", count, series{"calls", "sum(increase(evenhand_calls_withheld_total[$__rate_interval]))"}),
		metric("Passed over", "In an interval: payloads that tell of no call that makes text", count, series{"{{format}} {{kind}}", told("evenhand_ignored_total", "format, kind")}),
		metric("Evaluation events", "A second, to evaluations.endpoint; dropped: more than evaluations.queue waited", "reqps", series{"{{outcome}}", each("evenhand_evaluation_events_total", "outcome")}),
	)
	d.WithRow(dashboard.NewRowBuilder("The judge"))
	with(d,
		metric("Asked of the judge", "In an interval, by why: grey (the rules are in doubt), domain, sample, asked (by a person), again; lost: the brokers did not take them, and the sweep asks again", count,
			series{"{{reason}}", told("evenhand_judge_requests_total", "reason")}, series{"lost", "sum(increase(evenhand_judge_requests_lost_total[$__rate_interval]))"}),
		metric("What became of requests", "In an interval; waiting: the model was away when the request came up, and it stays in its place", count, series{"{{outcome}}", told("evenhand_judge_answers_total", "outcome")}),
		metric("Judged share", "Of the requests that came up, those with a verdict of the judge, by why they were made", share,
			series{"{{why}}", "sum by (why) (rate(" + judged + "[$__rate_interval])) / sum by (why) (rate(" + cameUp + "[$__rate_interval]))"}),
		metric("Waiting", "Chosen and without an answer after a quarter of an hour, and those asked for once more: as the job judge_sweep saw it last", count,
			series{"{{figure}}", `max by (figure) (evenhand_job_figure{job="judge_sweep"})`}),
		metric("Without a verdict", "In an interval, by reason", count, series{"{{outcome}} {{reason}}", `sum by (outcome, reason) (increase(evenhand_judge_answers_total{reason!=""}[$__rate_interval]))`}),
		metric("Time of a request", "All votes together", seconds, quantile("p50", "0.5", "evenhand_judge_seconds", ""), quantile("p95", "0.95", "evenhand_judge_seconds", "")),
		metric("Odd answers", "In an interval: quotes that do not stand in the text, answers asked for again because they were no verdict (repaired), texts that addressed the judge (injection), answers thrown away (leaked), votes that differed (split)", count,
			series{"{{what}}", told("evenhand_judge_odd_total", "what")}),
		metric("Rules and judge", "In an interval: verdicts by whether each found bias", count, series{"rules {{rules}}, judge {{judge}}", told("evenhand_judge_against_rules_total", "rules, judge")}),
		metric("Tokens", "A second, of verdicts of the judge", count, series{"{{side}}", each("evenhand_judge_tokens_total", "side")}),
		metric("Cost", "An hour, where judge.price_input and judge.price_output are set", usd, series{"judge", "3600 * sum(rate(evenhand_judge_cost_usd_total[$__rate_interval]))"}),
		metric("Questions to models", "A second, by outcome: for the judge, the hybrid evaluator and replays", "reqps", series{"{{model}} {{outcome}}", each("evenhand_model_questions_total", "model, outcome")}),
		metric("Time of a question", "Attempts and waits together", seconds, quantile("{{model}} p50", "0.5", "evenhand_model_seconds", "model"), quantile("{{model}} p95", "0.95", "evenhand_model_seconds", "model")),
		metric("Replays", "In an interval, by outcome of the round", count, series{"{{outcome}}", told("evenhand_replays_total", "outcome")}),
		metric("Replays that mended", "Of calls that were made again, those whose replay passed", share, series{"mended", `sum(increase(evenhand_replays_total{outcome="passed"}[$__range])) / sum(increase(evenhand_replays_total{round="1"}[$__range]))`}),
	)
	d.WithRow(dashboard.NewRowBuilder("People"))
	return with(d,
		metric("Gates", "In an interval: opened, and how they ended", count, series{"{{outcome}}", told("evenhand_gates_total", "outcome")}),
		metric("Gates that wait", "As the job gates saw it last", count, series{"open", `max(evenhand_job_figure{job="gates", figure="open"})`}),
	)
}

// Requests to the judge that have its verdict, and all that came up and do not wait.
const (
	judged = `evenhand_judge_answers_total{outcome=~"done|cached|repeated"}`
	cameUp = `evenhand_judge_answers_total{outcome!~"waiting|error"}`
)

// series is one expression and the names of what it gives.
type series struct{ legend, expr string }

// each is a rate a second, told the increase in an interval; by labels.
func each(name, by string) string {
	return "sum by (" + by + ") (rate(" + name + "[$__rate_interval]))"
}
func told(name, by string) string {
	return "sum by (" + by + ") (increase(" + name + "[$__rate_interval]))"
}

// quantiles are the middle and the 99th percentile of a histogram.
func quantiles(name, by string) []series {
	label := ""
	if by != "" {
		label = "{{" + by + "}} "
	}
	return []series{quantile(label+"p50", "0.5", name, by), quantile(label+"p99", "0.99", name, by)}
}

func quantile(legend, q, name, by string) series {
	le := "le"
	if by != "" {
		le += ", " + by
	}
	return series{legend, "histogram_quantile(" + q + ", sum by (" + le + ") (rate(" + name + "_bucket[$__rate_interval])))"}
}

// metric shows series of Prometheus over time, half a board wide.
func metric(title, about, unit string, all ...series) *timeseries.PanelBuilder {
	kind, uid := Metrics, "${prometheus}"
	from := common.DataSourceRef{Type: &kind, Uid: &uid}
	p := timeseries.NewPanelBuilder().Title(title).Description(about).Datasource(from).Height(8).Span(12).Unit(unit).Min(0).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		LineWidth(1).ShowPoints(common.VisibilityModeAuto)
	for i, s := range all {
		p.WithTarget(prometheus.NewDataqueryBuilder().RefId("A" + strconv.Itoa(i)).Datasource(from).EditorMode(prometheus.QueryEditorModeCode).Expr(s.expr).LegendFormat(s.legend).Range())
	}
	return p
}
