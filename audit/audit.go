// Package audit holds the nouns of Evenhand and the arithmetic of scores: interactions, findings,
// verdicts, severities, the protected grounds of Art. 21 of the EU Charter, domain profiles.
//
// It imports the standard library only and knows no technology. Values are immutable once built:
// a stage of the pipeline returns new values and never reaches back into older ones.
//
// Scores are whole millionths ([Score]); decimals appear only at the edges, because sums such as
// 0.1+0.1+0.1 > 0.3 are true for float64 and would flag what must not be flagged.
// Spans count Unicode code points of the original text, 0-based, [start, end).
package audit
