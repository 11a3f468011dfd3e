package boards

import "github.com/grafana/grafana-foundation-sdk/go/table"

// remediation shows what broke its baseline, how fast it was seen and mended, and its tickets.
func remediation(sql statements) *builder {
	d := blank("remediation", "Breaches, their tickets, and the time to detect, ticket and mitigate", "remediation").Time("now-30d", "now").
		WithVariable(choice("tenant", "Tenant", sql)).WithVariable(choice("domain", "Domain", sql))
	with(d,
		number("Open breaches", "As of now", sql["open_breaches"], count, step{Color: "green"}, step{Color: "red", Value: new(1.0)}).Span(5),
		number("Open without a ticket", "As of now", sql["without_ticket"], count, step{Color: "green"}, step{Color: "orange", Value: new(1.0)}).Span(4),
		number("Time to detect", "Median from the end of the window, or from the review, to the opening", sql["time_to_detect"], seconds).Span(5),
		number("Time to ticket", "Median from the opening to the first thing sent to the tracker", sql["time_to_ticket"], seconds).Span(5),
		number("Time to mitigate", "Median from the opening until its ticket was closed", sql["time_to_mitigate"], seconds).Span(5),
		breaches("Open now", "The strongest first", sql["breaches_now"]),
		rates("By tier and domain", "Open now, or changed in the range", sql["breach_states"]),
		stacked("Breaches opened", "By the tier of evidence", sql["breaches_opened"], count),
		breaches("History", "Every transition in the range, the newest first", sql["breach_history"]),
		cells("Tickets", "What was to be said to trackers in the range, by state", sql["tickets_by_state"]).Height(7),
		lines("Time to send", "From the outbox to the tracker", sql["ticket_delay"], seconds).Height(7),
	)
	return with(d, cells("Trouble with tickets", "By class of error", sql["ticket_errors"]).Span(24).Height(6))
}

// breaches is a table of breaches whose cells lead to the ticket and to the window on the board that shows the kind.
func breaches(title, about, sql string) *table.PanelBuilder {
	const ratesLink = "/d/${__data.fields.board}?var-tenant=${__data.fields.tenant:percentencode}&var-domain=${__data.fields.domain:percentencode}&from=${__data.fields.from_ms}&to=${__data.fields.to_ms}"
	return rates(title, about, sql).Span(24).
		OverrideByName("severity", severities()).
		OverrideByName("ticket", linked("Ticket", "${__data.fields.ticket_url}")).
		OverrideByName("kind", linked("Rates in this window", ratesLink)).
		OverrideByRegexp("/^(ticket_url|from_ms|to_ms|board)$/", hidden())
}
