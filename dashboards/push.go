package dashboards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"time"

	gapi "github.com/grafana/grafana-api-golang-client"

	"github.com/evenhand/evenhand/audit"
)

// FolderUID and SourceUID are what the folder and the data source are known by, here and in provisioning/.
const (
	FolderUID = "evenhand"
	SourceUID = "evenhand"
	plugin    = "grafana-clickhouse-datasource"
)

// Target is a Grafana and how to sign in there: by a service account's token, or by name and password.
type Target struct {
	URL            string
	Token          string
	User, Password string
	Timeout        time.Duration // of one call; 0 means 15 s
}

// Source is the ClickHouse that Grafana shall ask, as Grafana reaches it.
type Source struct {
	Host     string
	Port     int
	HTTP     bool // ClickHouse's HTTP protocol; else the native one
	TLS      bool
	Database string
	User     string
	Password string
}

// Options say what to push. Nothing is changed in a dry run.
type Options struct {
	Folder  string  // title of the folder, when it has to be made
	Source  *Source // nil leaves the data source alone
	Message string  // of the dashboards' history
	DryRun  bool
}

// Step is one thing that was looked at. Did is created, updated, unchanged or left; in a dry run what
// would be done. URL is the dashboard's.
type Step struct {
	What string `json:"what"`
	Name string `json:"name"`
	UID  string `json:"uid"`
	Did  string `json:"did"`
	URL  string `json:"url,omitempty"`
}

// What happened to a thing.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
	Left      = "left" // it is provisioned by files: its owner changes it there
)

// Push brings folder, data source and dashboards to a Grafana, in that order, and tells what it did up
// to an error. A dashboard that was changed there is overwritten; Grafana keeps its history.
func Push(ctx context.Context, to Target, o Options) ([]Step, error) {
	const op = "dashboards: push"
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c, err := connect(to, bounded{ctx, transport})
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	boards, err := Boards()
	if err != nil {
		return nil, audit.E(op, audit.KindInternal, err)
	}
	p := pusher{client: c, options: o}
	if err := p.all(boards); err != nil {
		kind, said := explain(err)
		return p.steps, audit.E(op, kind, said)
	}
	return p.steps, nil
}

func connect(to Target, transport http.RoundTripper) (*gapi.Client, error) {
	if os.Getenv("GF_LOG") != "" {
		return nil, errors.New("GF_LOG is set, and would print every call with its secrets; unset it")
	}
	u, err := url.Parse(to.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address is not like http://127.0.0.1:3000")
	case u.User != nil:
		return nil, errors.New("the address holds a name or password; give them apart from it")
	case (to.Token == "") == (to.User == ""):
		return nil, errors.New("give a token, or a name with its password, and not both")
	}
	if to.Timeout == 0 {
		to.Timeout = 15 * time.Second
	}
	cfg := gapi.Config{APIKey: to.Token, Client: &http.Client{Timeout: to.Timeout, Transport: transport}}
	if to.User != "" {
		cfg.BasicAuth = url.UserPassword(to.User, to.Password)
	}
	return gapi.New(to.URL, cfg)
}

// bounded ends the client's calls with a context, which the client knows none of, and follows no redirect.
type bounded struct {
	ctx  context.Context // the client passes none on
	next http.RoundTripper
}

// RoundTrip makes one call.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())                       // the client's own holds its timeout
	defer context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })() //nolint:contextcheck // two contexts end one call
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		return nil, &redirected{resp.StatusCode}
	}
	return resp, err
}

// pusher holds what one Push has done so far.
type pusher struct {
	client  *gapi.Client
	options Options
	steps   []Step
}

func (p *pusher) all(boards []Board) error {
	if _, err := p.client.Health(); err != nil {
		return at("health", err)
	}
	if err := p.folder(); err != nil {
		return at("folder "+FolderUID, err)
	}
	if p.options.Source != nil {
		if err := p.source(*p.options.Source); err != nil {
			return at("data source "+SourceUID, err)
		}
	}
	for _, b := range boards {
		if err := p.board(b); err != nil {
			return at("dashboard "+b.UID, err)
		}
	}
	return nil
}

func (p *pusher) did(what, name, uid, did, url string) {
	p.steps = append(p.steps, Step{what, name, uid, did, url})
}

// folder makes the folder; one of that UID is taken as it is, whatever its title.
func (p *pusher) folder() error {
	f, err := p.client.FolderByUID(FolderUID)
	switch {
	case err == nil:
		p.did("folder", f.Title, FolderUID, Unchanged, "")
		return nil
	case !missing(err):
		return err
	case !p.options.DryRun:
		if _, err := p.client.NewFolder(p.options.Folder, FolderUID); err != nil {
			if _, again := p.client.FolderByUID(FolderUID); again != nil { // else another push was faster
				return err
			}
		}
	}
	p.did("folder", p.options.Folder, FolderUID, Created, "")
	return nil
}

// source makes the data source or brings it up to date, by UID: numeric ids are going from Grafana.
func (p *pusher) source(s Source) error {
	protocol := "native"
	if s.HTTP {
		protocol = "http"
	}
	d := &gapi.DataSource{
		UID: SourceUID, Name: "Evenhand", Type: plugin, Access: "proxy",
		JSONData: map[string]any{"host": s.Host, "port": s.Port, "protocol": protocol, "secure": s.TLS, "username": s.User,
			"defaultDatabase": s.Database, "dialTimeout": "10", "queryTimeout": "30"},
		SecureJSONData: map[string]any{"password": s.Password},
	}
	there, err := p.client.DataSourceByUID(SourceUID)
	did := Updated
	switch {
	case err != nil && !missing(err):
		return err
	case err != nil:
		did = Created
		if !p.options.DryRun {
			_, err = p.client.NewDataSource(d)
		} else {
			err = nil
		}
	case there.ReadOnly:
		did = Left
	case there.Type != plugin:
		return fmt.Errorf("is of type %s and not ours to change", there.Type)
	case !p.options.DryRun:
		// Its secrets are not told, so it cannot be seen to be unchanged. What a person chose stays.
		d.Name, d.IsDefault, d.Version = there.Name, there.IsDefault, there.Version
		err = p.client.UpdateDataSourceByUID(d)
	}
	if err == nil {
		p.did("data source", d.Name, SourceUID, did, "")
	}
	return err
}

// board saves a dashboard unless it is there just so.
func (p *pusher) board(b Board) error {
	var model map[string]any
	if err := json.Unmarshal(b.JSON, &model); err != nil {
		return err
	}
	delete(model, "version")
	there, err := p.client.DashboardByUID(b.UID)
	did := Created
	if err == nil {
		did = Updated
		delete(there.Model, "id")
		delete(there.Model, "version")
		if reflect.DeepEqual(there.Model, model) && there.Meta.FolderUID == FolderUID {
			p.did("dashboard", b.Title, b.UID, Unchanged, there.Meta.URL)
			return nil
		}
	} else if !missing(err) {
		return err
	}
	url := "/d/" + b.UID
	if !p.options.DryRun {
		if _, err := p.client.NewDashboard(gapi.Dashboard{Model: model, FolderUID: FolderUID, Overwrite: true, Message: p.options.Message}); err != nil {
			return err
		}
	}
	p.did("dashboard", b.Title, b.UID, did, url)
	return nil
}
