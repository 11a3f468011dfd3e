// Package alarm decides when a rate has departed from what is usual, and tells it once.
//
// A cell is a tenant, a domain and a kind of finding, or any bias of the domain. Every hour its last
// day is compared with its own past ([Evaluate]): exact binomial tests under the control of false
// discovery, a baseline shrunk to that of the domain, hysteresis, a cool-down. What is wanted is a pure
// function of the hourly counts, the policies ([Policies]), the transitions so far and the hour; there
// is no other state, so a run that is repeated, or made by two processes, wants the same.
//
// [Runner] is the job: it reads the rollups, proposes each wanted transition of a breach on the log of
// decisions, where one proposer wins, and writes the row that is made of the decision alone. A process
// that ends between the two leaves a decision without its row; the next run writes it. [Replay] runs
// the same evaluation over the past, for `evenhand alarms backtest` and for the simulation.
//
// Cost: an evaluation of 1,920 cells with 29 days of hours takes some milliseconds; reading them is one
// query over rollup_hourly. Errors are those of the store and the arbiter. No text of people is read.
package alarm

import (
	"strconv"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Cell is what has a rate.
type Cell struct {
	Tenant string       `json:"tenant_id"`
	Domain audit.Domain `json:"domain"`
	Kind   string       `json:"kind"` // a taxonomy key; "" is any bias
}

// Groups keep breaches of one cell apart that other evidence opened: they have tickets of their own.
const (
	groupRate       = ""
	groupBlind      = "coverage"
	groupCritical   = "critical"
	groupMitigation = "mitigation"
)

// Reasons of transitions that are made here.
const (
	ReasonBreached      = "breached"
	ReasonReturned      = "returned"       // within the time of reopening
	ReasonRepeated      = "repeated"       // still there a day after the last news
	ReasonNearBaseline  = "near_baseline"  // the rate stayed near its baseline
	ReasonNoTraffic     = "no_traffic"     // nothing was analysed any more
	ReasonPolicyChanged = "policy_changed" // the policy that opened it holds no more for the cell
	ReasonRulesChanged  = "rules_changed"  // the cell's rules have another version: its baseline begins anew
	ReasonQuiet         = "quiet"          // it did not come back after its ticket was closed
	ReasonAccepted      = "accepted"       // by a person: the new rate is the usual one from now on
)

// byPeople are the reasons for which people resolve breaches.
var byPeople = []string{"fixed", "noise", ReasonAccepted}

// BreachID is the id of a breach: it is the same for every process that finds it.
func BreachID(policy string, c Cell, group string, generation uint32) audit.ID {
	return audit.DerivedV4("breach", c.Tenant, policy, string(c.Domain), c.Kind, group, strconv.FormatUint(uint64(generation), 10))
}

// hours counts whole hours.
func hours(d time.Duration) int { return int(d / time.Hour) }
