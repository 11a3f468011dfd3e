package boards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// judge shows what the judging model said and what became of its requests, as the store tells it: by the time of its answers, of events of
// the last month of the range at most. Why interactions were chosen, what waits and what was odd about answers only the processes know: see doors.
func judge(sql statements) *builder {
	d := blank("judge", "What the judging model said, beside the rules, and what it took. By the time of its answers, up to a month back. The board doors has why it was asked, what waits and what was odd", "judge").Time("now-7d", "now").
		WithVariable(choice("tenant", "Tenant", sql))
	with(d,
		number("Judged", "Interactions with a verdict of the judge", sql["judge_judged"], count),
		number("To be asked again", "Interactions on which it failed or had no budget left", sql["judge_waiting"], count, step{Color: "green"}, step{Color: "orange", Value: new(1.0)}),
		number("Given up", "Interactions on which it failed too often, or whose texts were gone", sql["judge_abandoned"], count, step{Color: "green"}, step{Color: "red", Value: new(1.0)}),
		number("Answered", "Share of interactions with a verdict among those that it was asked about and that do not wait in the log", sql["judge_coverage"], share,
			step{Color: "red"}, step{Color: "orange", Value: new(0.9)}, step{Color: "green", Value: new(0.99)}),
		number("Agreement with the rules", "Share of judged interactions on which both or neither found bias", sql["judge_agreement"], share),
		number("Injection attempts", "Interactions whose response addressed the judge", sql["judge_injections"], count, step{Color: "green"}, step{Color: "orange", Value: new(1.0)}),
		number("Cost", "Of all attempts, where judge.price_input and judge.price_output are set", sql["judge_cost"], usd),
		number("Time of an answer, p95", "All votes together; answers of equal texts are left out", sql["judge_p95"], seconds),
		stacked("Verdicts", "Interactions by the judge's newest word on them", sql["judge_results"], count),
		stacked("Beside the rules", "Judged interactions by who found bias", sql["judge_beside"], count),
		lines("Bias, DEI and offensive language", "Share of judged interactions in which the judge found some", sql["judge_found"], share),
		rates("Judged by domain", "k judged of n interactions, with the 95 % Wilson interval; up to a week back", sql["judge_domains"]).Height(8),
		rates("Found by kind", "k of n judged interactions, with the 95 % Wilson interval", sql["judge_kinds"]).Span(24),
	)
	d.WithRow(dashboard.NewRowBuilder("What did not come about"))
	with(d, cells("Without a verdict", "Interactions by the reason of the newest attempt", sql["judge_reasons"]).Span(24).Height(6))
	d.WithRow(dashboard.NewRowBuilder("Time, tokens and cost"))
	with(d,
		lines("Time of an answer", "All votes together; answers of equal texts are left out", sql["judge_time"], seconds),
		stacked("Tokens", "Of all attempts", sql["judge_tokens"], count),
		stacked("Cost by judge", "By version of the prompt and model", sql["judge_cost_trend"], usd),
		cells("Judges", "Verdicts with calls, by version of the prompt and model; usd_a_thousand: for a thousand of them", sql["judge_models"]).Height(8).
			OverrideByRegexp("/^usd/", unit(usd)).OverrideByRegexp("/^p\\d+$/", unit(seconds)),
	)
	d.WithRow(dashboard.NewRowBuilder("Interactions"))
	return with(d, cells("Latest findings", "Non-compliant or for a person, newest first; texts are not shown here", sql["judge_latest"]).Span(24).Height(10))
}
