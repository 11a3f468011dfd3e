package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// digest is the SHA-256 of what the event says, whole, before any cut: not of its id, its trace, its
// headers or its place in the log, and not of the texts that are derived from messages or a response
// object. Each field stands in this fixed order behind its length (four bytes, big-endian); numbers
// are decimals. Stored keys hang on it: never change it, add a version.
func (st *state) digest(in *audit.Interaction, given time.Time) [32]byte {
	b := append(st.scratch[:0], "evenhand.interaction.v1"...)
	put := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	number := func(n int64) {
		at := len(b)
		b = strconv.AppendInt(append(b, 0, 0, 0, 0), n, 10)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	prompt, response := in.Prompt, in.Response
	if in.Messages != "" {
		prompt = ""
	}
	if in.ResponseJSON != "" {
		response = ""
	}
	put(in.Tenant)
	if given.IsZero() {
		put("")
	} else {
		number(given.UnixMilli())
	}
	for _, s := range [...]string{
		in.Conversation, in.Application, string(in.Domain), in.DomainGiven, in.DecisionID,
		in.UserID, in.UserEmail, in.UserRole, in.QueryContext, st.query, prompt, in.Messages, response, in.ResponseJSON,
		in.SanitizedPrompt, in.RedactionSummary, in.RetrievedContext, in.GroupAttributes, in.Metadata, in.ErrorMessage,
		in.Provider, in.Model, in.TemplateID, in.TemplateVersion, in.SensitivityScore, in.Status,
	} {
		put(s)
	}
	for _, n := range [...]int64{
		int64(in.PromptTokens), int64(in.ResponseTokens), int64(in.LatencyMS), in.CostMicroUSD,
		int64(in.ContainedPII), int64(in.ContainedProprietary), int64(in.ContainedCustomerData),
	} {
		number(n)
	}
	st.scratch = b
	return sha256.Sum256(b)
}

// unpack leaves images, sounds and files out of what is stored, which nothing reads there. The digest has them.
func (st *state) unpack(in *audit.Interaction) {
	if !st.packs {
		return
	}
	st.lean = true
	if in.Messages != "" {
		in.Messages = st.canonicalText(st.present(fMessages), names[fMessages])
	}
	if in.ResponseJSON != "" {
		f := st.either(fResponse, fLLMResponse)
		in.ResponseJSON = st.canonicalText(st.present(f), names[f])
	}
	st.lean = false
}

// cut counts the code points of prompt and response, says how much of them is stored, and brings every other text field under the limit.
// Plain text is cut at a code point; JSON, which a cut would break, is replaced by its size.
func (st *state) cut(in *audit.Interaction) {
	in.PromptChars = uint32(runes(in.Prompt))
	in.ResponseChars = uint32(runes(in.Response))
	limit := st.d.limits.Text
	if in.Truncated = len(in.Prompt) > limit || len(in.Response) > limit; in.Truncated {
		in.TextBytes = limit
	}
	for _, s := range [...]*string{&in.Query, &in.SanitizedPrompt, &in.ErrorMessage} {
		if len(*s) > limit {
			*s = strings.Clone(audit.Clip(*s, limit))
			in.Truncated = true
		}
	}
	for _, s := range [...]*string{
		&in.QueryContext, &in.Messages, &in.ResponseJSON, &in.RedactionSummary, &in.RetrievedContext, &in.GroupAttributes, &in.Metadata,
	} {
		if len(*s) > limit {
			*s = `{"truncated":true,"bytes":` + strconv.Itoa(len(*s)) + `}`
			in.Truncated = true
		}
	}
}
