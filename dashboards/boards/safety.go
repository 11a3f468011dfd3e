package boards

// safety shows content safety, actions that ask for approval, and the kinds beside the characteristics.
func safety(sql statements) *builder {
	d := filters(blank("safety, gates, language", "Content safety, actions that need approval, DEI and wording"+whole, "safety"), sql)
	notes(d, sql)
	return with(d,
		number("Analysed interactions", "Interactions that were looked at, in whole or in part", sql["analysed"], count),
		number("Unsafe", "Share of analysed interactions whose safety findings passed the threshold", sql["unsafe"], share),
		number("Gated", "Share of analysed interactions with an action that needs a person's approval", sql["gated"], share),
		coverage(sql),
		banded("Unsafe over time", "With the 95 % Wilson interval", sql["unsafe_trend"]),
		lines("Safety by category", "Share of analysed interactions with a finding of that kind in the response", sql["safety_trend"], share),
		lines("Actions that need approval", "Share of analysed interactions by kind of action", sql["gate_trend"], share),
		lines("DEI, wording and other kinds", "Known phrases, DEI guidelines, judged and linguistic kinds", sql["dei_trend"], share),
		stacked("Findings by severity", "Interactions by the strongest severity of each kind, without the characteristics", sql["kind_severity"], count),
		stacked("Suggested mitigations", "Analysed interactions by suggested mitigation", sql["mitigations"], count),
		matrix("Rate by kind and domain", "Colour shows the rate", sql["kind_matrix"], "domain", "kind").Span(24).Height(7),
		rates("Kinds with intervals", "k of n, with the 95 % Wilson interval", sql["kind_rates"]).Span(24),
	)
}
