package boards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// biasRates shows how often responses were biased: over time, by characteristic, domain, model and application.
func biasRates(sql statements) *builder {
	d := filters(blank("bias rates", "How often responses held bias, with the uncertainty of each rate"+whole, "bias"), sql).
		WithVariable(choice("characteristic", "Characteristic", sql))
	notes(d, sql)
	with(d,
		number("Analysed interactions", "Interactions that were looked at, in whole or in part", sql["analysed"], count).Span(5),
		number("Bias detected", "Share of analysed interactions with a finding of a bias detector in the response", sql["detected"], share).Span(5),
		number("Flagged", "Share of analysed interactions that passed their domain's threshold", sql["flagged"], share).Span(5),
		coverage(sql).Span(5),
		number("In other languages", "Share of analysed interactions whose response is in a language that the detectors have not learnt: bias in them goes unseen, and the rates count them as clean. Read from the facts, up to a month back", sql["other_languages"], share,
			step{Color: "green"}, step{Color: "orange", Value: new(0.01)}, step{Color: "red", Value: new(0.1)}).Span(4),
		banded("Bias detected over time", "With the 95 % Wilson interval", sql["bias_trend"]),
		lines("Bias detected by characteristic", "Grounds of Art. 21 of the EU Charter; an interaction counts once a ground", sql["bias_by_characteristic"], share),
		matrix("Rate by characteristic and domain", "Colour shows the rate", sql["bias_matrix"], "domain", "characteristic").Span(24).Height(7),
		rates("Rates with intervals", "k of n, with the 95 % Wilson interval", sql["bias_rates"]),
		matrix("Rate by characteristic and model", "Colour shows the rate", sql["bias_model_matrix"], "model", "characteristic"),
		rates("By model", "Any bias, the 50 highest rates, with the 95 % Wilson interval", sql["bias_by_model"]),
		rates("By application", "Any bias, the 50 highest rates, with the 95 % Wilson interval", sql["bias_by_app"]),
	)
	d.WithRow(dashboard.NewRowBuilder("Each characteristic with its interval"))
	d.WithPanel(banded("$characteristic", "Rate of this characteristic with its 95 % Wilson interval", sql["bias_characteristic"]).
		Repeat("characteristic").RepeatDirection(dashboard.PanelRepeatDirectionH).MaxPerRow(4).Height(7).Span(6))
	d.WithRow(dashboard.NewRowBuilder("Interactions"))
	return with(d,
		cells("Rules that fired most", "In responses of the last two days of the range, by interactions; bias that a reviewer dismissed is left out, as in the rates", sql["bias_rules"]).Span(24),
		cells("Latest flagged interactions", "Newest first, up to a week back, without those that a reviewer dismissed; texts are not shown here", sql["latest_flagged"]).Span(24).Height(10).OverrideByName("severity", severities()),
	)
}
