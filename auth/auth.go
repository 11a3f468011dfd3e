// Package auth says who a caller is and what it may do: the one place that reads tokens and keys.
//
// A [Principal] is made from a verified credential, travels in the request's context, and names the one
// tenant whose records the caller may touch. Who has no valid credential has no principal. What a
// principal may do is a set of permissions that roles stand for.
package auth

import (
	"context"
	"slices"
	"time"
)

// Role is what tokens give people and machines.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // reads figures and records, texts masked
	Reviewer Role = "reviewer" // reads texts and reviews
	Admin    Role = "admin"    // everything
	Service  Role = "service"  // a machine: sends interactions and verdicts, reads its records
	Approver Role = "approver" // answers gates, reads figures and records
)

// Roles lists them all.
var Roles = []Role{Viewer, Reviewer, Admin, Service, Approver}

// Permission is one thing that a caller may do. API keys name those they have.
type Permission string

// The permissions.
const (
	Ingest     Permission = "ingest"     // send interactions
	Analyze    Permission = "analyze"    // have texts judged that are not kept
	Guard      Permission = "guard"      // have texts judged in line, which makes an event of each
	Read       Permission = "read"       // read records and figures
	ReadTexts  Permission = "texts"      // read prompts, responses and evidence
	ReadPeople Permission = "people"     // read who the user was
	Annotate   Permission = "annotate"   // add verdicts of outside analyzers
	Review     Permission = "review"     // review, give feedback, reveal with a reason, ask the judge
	Administer Permission = "administer" // change the vocabulary
	Approve    Permission = "approve"    // answer gates, and read what they ask about
)

// Permissions lists them all.
var Permissions = []Permission{Ingest, Analyze, Guard, Read, ReadTexts, ReadPeople, Annotate, Review, Administer, Approve}

var grants = map[Role][]Permission{
	Viewer:   {Read},
	Reviewer: {Read, ReadTexts, Review},
	Service:  {Ingest, Analyze, Guard, Read, ReadTexts, ReadPeople, Annotate},
	Admin:    Permissions,
	Approver: {Read, Approve},
}

// Grants lists what a role may do; nothing for an unknown one.
func Grants(r Role) []Permission { return slices.Clone(grants[r]) }

// Principal is a verified caller.
type Principal struct {
	// Tenant is the only one that the caller may touch. Doors fill it in from header and default where
	// the credential is bound to none (no authentication, the static key); it is never empty for GraphQL.
	Tenant string
	// Subject names the caller in what it leaves behind: a token's sub, "key:ID", "static-key", "anonymous".
	Subject string
	Roles   []Role       // as the token gave them
	May     []Permission // sorted, without repeats
	// Verified is false while authentication is off: then a payload may name the tenant.
	Verified bool
	// Assumed: nobody named the tenant, it is tenant.default. Then, while authentication is off, the
	// payload's stands above it.
	Assumed bool
	// Until is when the credential ends by itself, with what clocks may differ; zero: never.
	Until time.Time
}

// Can tells whether the principal has a permission; a nil one has none.
func (p *Principal) Can(what Permission) bool { return p != nil && slices.Contains(p.May, what) }

// Named tells whether the subject is one caller's own: nobody's while authentication is off, everybody's who
// has it with the static key.
func (p *Principal) Named() bool {
	return p != nil && p.Subject != "" && p.Subject != subjectAnonymous && p.Subject != subjectStatic
}

type principalKey struct{}

// With puts the caller into a request's context.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From gives the caller of a request, nil when there is none.
func From(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}
