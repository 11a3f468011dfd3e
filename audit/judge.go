package audit

// JudgeAnalyzer names the judging model in verdict rows. Its verdicts add to those of the rules and take nothing from them; one
// that did not come about (failed, skipped, abandoned) is kept and never current.
const JudgeAnalyzer = "judge"

// Names of the judge's scores in bias_score, 0..1. ScoreDEI is the one where higher is better.
const (
	ScoreJudge     = "judge" // bias
	ScoreDEI       = "dei"
	ScoreOffensive = "offensive"
)
