package store

// What tenants' reads touch, and all that their account in the server needs to see: of TenantTables, which
// have a column tenant_id, the rows of one tenant; CommonTables are views over those and the vocabulary.
// The method from of a scope takes these names only (a test holds it).
var (
	TenantTables = []string{
		"audit_current", "interactions", "interaction_texts", "interaction_users", "verdicts", "reviews", "reveals", "feedback",
		"rollup_hourly", "rollup_daily", "breaches", "tickets", "rejected", "gates",
	}
	CommonTables = []string{"current_verdicts", "bias_taxonomy"}
)
