package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	gapi "github.com/grafana/grafana-api-golang-client"

	"github.com/evenhand/evenhand/audit"
)

func missing(err error) bool { return errors.As(err, &gapi.ErrNotFound{}) }

func at(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

type redirected struct{ status int }

func (r *redirected) Error() string {
	return fmt.Sprintf("redirects (status %d): give the address that it leads to", r.status)
}

// status is how the client tells a refusal: it has no type for it.
var status = regexp.MustCompile(`status: (\d{3}), body: `)

// mends tell what to do about a status.
var mends = map[int]string{
	401: "Grafana does not know these credentials; make a token under Administration, Service accounts",
	403: "these credentials may not do that; the service account needs the role Editor, and Admin for data sources",
	404: "there is no such call at this address; is it Grafana's own, with its path if it has one?",
	409: "something of this name is there already",
	412: "something else of this name or a newer version is there already",
}

// explain turns the client's error into one that names the mend, and gives its kind.
func explain(err error) (audit.Kind, error) {
	var r *redirected
	if errors.As(err, &r) {
		return audit.KindInvalid, err
	}
	if missing(err) {
		return audit.KindInvalid, fmt.Errorf("%s: status 404: %s", before(err), mends[404])
	}
	said := err.Error()
	m := status.FindStringSubmatchIndex(said)
	if m == nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return audit.KindInvalid, fmt.Errorf("%s: what answers there is not Grafana", before(err))
		}
		return audit.KindUnavailable, err
	}
	code, _ := strconv.Atoi(said[m[2]:m[3]])
	var body struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal([]byte(said[m[1]:]), &body) // an answer without a message is told by its status
	text := fmt.Sprintf("%sstatus %d", said[:m[0]], code)
	if body.Message != "" {
		text += " (" + body.Message + ")"
	}
	if mend := mends[code]; mend != "" {
		text += ": " + mend
	}
	if code >= 500 || code == 429 {
		return audit.KindUnavailable, errors.New(text)
	}
	return audit.KindInvalid, errors.New(text)
}

// before gives what was being done.
func before(err error) string {
	what, _, _ := strings.Cut(err.Error(), ": ")
	return what
}
