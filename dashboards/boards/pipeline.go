package boards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// pipeline shows how the audit itself is doing, as the store tells it: what came in, how late, what could
// not be read, what it costs. What only the processes know (retries, claims) is on /metrics.
func pipeline(sql statements) *builder {
	d := filters(blank("pipeline", "Freshness, throughput, coverage, dead letters, jobs and cost. Filters act on coverage, dead letters (tenant) and cost"+whole, "pipeline"), sql)
	d.WithRow(dashboard.NewRowBuilder("Freshness"))
	with(d,
		number("Since the newest batch", "Time since anything was written; it grows when nothing comes in too", sql["batch_age"], seconds,
			step{Color: "green"}, step{Color: "orange", Value: new(120.0)}, step{Color: "red", Value: new(600.0)}),
		number("Age when stored, p95", "From the broker's time of a batch's oldest record to its row in the store", sql["freshness_p95"], seconds),
		coverage(sql),
		number("Dead letters", "Messages of the range that could not become interactions, or requests to the judge", sql["rejected_count"], count, step{Color: "green"}, step{Color: "orange", Value: new(1.0)}),
		lines("Age when stored", "From the broker's time of a batch's oldest record to its row in the store", sql["freshness"], seconds),
		lines("Lag", "Records that lay in the log behind what was written, the most of the interval: of all partitions and of the worst", sql["lag"], count),
		lines("Throughput", "Records a second", sql["throughput"], "reqps"),
		lines("Batches", "Commit markers, and rows of each", sql["batches"], count),
		cells("Partitions", "Newest position and record of each partition in the range; lost counts offsets that the log dropped before they were read", sql["partitions"]).Span(24),
	)
	d.WithRow(dashboard.NewRowBuilder("Coverage and dead letters"))
	with(d,
		stacked("Analysis status", "Interactions by what became of their analysis", sql["statuses"], count),
		stacked("Dead letters by reason", "Messages that could not become interactions, or requests to the judge", sql["rejected_trend"], count),
		cells("Dead letters", "By reason and tenant; evenhand dlq list names them", sql["rejected_reasons"]).OverrideByName("bytes", unit(size)).Span(24).Height(7),
	)
	d.WithRow(dashboard.NewRowBuilder("Store and jobs"))
	with(d,
		cells("Active parts", "Many small parts mean that merges do not keep up", sql["parts"]).OverrideByName("bytes", unit(size)),
		cells("Jobs", "Runs of the range", sql["jobs"]).OverrideByName("seconds", unit(seconds)),
		number("Active parts", "Of all tables", sql["parts_count"], count, step{Color: "green"}, step{Color: "orange", Value: new(1000.0)}).Span(6).Height(8),
		stacked("Runs of jobs", "By outcome", sql["job_runs"], count).Span(18),
	)
	d.WithRow(dashboard.NewRowBuilder("Cost of the audited calls"))
	return with(d,
		number("Cost", "As the producers told it", sql["cost_total"], usd).Height(8),
		stacked("Cost by model", "As the producers told it", sql["cost_trend"], usd).Span(18),
		cells("Cost by application", "The 50 that cost most, and others: all the rest in one row. usd_a_thousand: for a thousand interactions", sql["cost_by_app"]).OverrideByRegexp("/^usd/", unit(usd)).Span(24),
	)
}
