package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Endpoint is where a user reaches the engine from another program.
type Endpoint struct {
	Native   string // host:port of the native protocol; stays while the engine runs
	HTTP     string // host:port of HTTP; stays, too
	Database string
	User     User
	Password string `json:"-"`
	PID      int    // the engine's process
}

// String hides the password.
func (p Endpoint) String() string {
	return fmt.Sprintf("clickhouse://%s:***@%s/%s (http %s)", p.User, p.Native, p.Database, p.HTTP)
}

// GoString hides the password from %#v.
func (p Endpoint) GoString() string { return p.String() }

// Config gives what [chconn.Open] needs to reach the endpoint as it is now.
func (p Endpoint) Config() chconn.Config {
	c := chconn.DefaultConfig()
	c.Addr, c.Database, c.Username, c.Password = []string{p.Native}, p.Database, string(p.User), p.Password
	return c
}

// Running finds the engine that another process of this account runs over dir. It fails with
// audit.KindUnavailable when there is none.
func Running(dir string, u User) (Endpoint, error) {
	const op = "embedded/engine: running"
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Endpoint{}, audit.E(op, audit.KindInvalid, err)
	}
	files := layout{dir}
	none := func(err error) (Endpoint, error) {
		return Endpoint{}, audit.E(op, audit.KindUnavailable, fmt.Errorf("no engine runs over %s (%w); start it: evenhand up", dir, err))
	}
	b, err := os.ReadFile(files.ports())
	if err != nil {
		return none(err)
	}
	var p ports
	if err := json.Unmarshal(b, &p); err != nil {
		return none(err)
	}
	switch pid := holder(files); {
	case pid == 0 || !alive(pid):
		return none(fmt.Errorf("process %d is gone", pid))
	case !held(files.lock()): // the ports in a copy of a folder are those of the original, and a process id may be another's
		return none(fmt.Errorf("process %d does not hold this folder", pid))
	}
	secret, err := os.ReadFile(files.secret(u))
	if err != nil {
		return none(err)
	}
	return p.endpoint(u, trim(secret)), nil
}

// ports are those on 127.0.0.1 that others see, and those of one child behind them. The data folder keeps
// those that others need.
type ports struct {
	Guard  int `json:"native"`
	HTTP   int `json:"http"` // see web
	PID    int `json:"pid"`  // the child's
	native int // the child's own, see guard
	http   int // and of HTTP
}

func (p ports) endpoint(u User, password string) Endpoint {
	database := Database
	if strings.HasPrefix(string(u), string(Grafana)+"_") {
		database = TenantDatabase
	}
	return Endpoint{Native: local(p.Guard), HTTP: local(p.HTTP), Database: database, User: u, Password: password, PID: p.PID}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// choose picks the ports of the next child: those of the last child when they are still free, else any free
// ones. Another process may take one before the child does; the child then ends, and the next one gets others.
func choose(last ports) (p ports, err error) {
	p = ports{Guard: last.Guard, HTTP: last.HTTP}
	if p.native, err = free(last.native); err != nil {
		return p, err
	}
	if p.http, err = free(last.http); err == nil && p.http == p.native { // offered again at once
		err = errors.New("no two free ports")
	}
	return p, err
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func taken(key string, port int, err error) error {
	if err == nil {
		return nil
	}
	return audit.E("embedded/engine: listen", audit.KindInvalid, fmt.Errorf("%s: %d cannot be used (%w); choose another, or 0 for any free one", key, port, err))
}

// free gives last if it is free and any free port else.
func free(last int) (int, error) {
	if last != 0 {
		if port, err := probe(last); err == nil {
			return port, nil
		}
	}
	return probe(0)
}

// probe tells whether a port is free; 0 asks for any.
func probe(port int) (int, error) {
	l, err := net.Listen("tcp", local(port))
	if err != nil {
		return 0, err
	}
	return portOf(l), l.Close()
}
