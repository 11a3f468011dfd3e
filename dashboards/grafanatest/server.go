// Package grafanatest is a Grafana for tests: Server answers the calls of its HTTP API that Evenhand makes,
// strictly.
package grafanatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Token and Password are what the fake takes, the password with the name admin.
const (
	Token    = "glsa_a_token_of_tests"
	Password = "a-password-of-tests"
)

// Server is a Grafana that speaks the calls that Grafana 13 serves and Evenhand makes, and no others: an
// unknown path, method or key of a body is an error of the test.
type Server struct {
	*httptest.Server
	t testing.TB

	mu         sync.Mutex
	Folders    map[string]string         // title by UID
	Dashboards map[string]map[string]any // model by UID
	InFolder   map[string]string         // folder by dashboard
	Sources    map[string]map[string]any
	Calls      []string            // method and path
	Fail       map[string][]string // answers to come of a call, "412 {…}", each once, "" to let one through
}

// NewServer starts one and stops it when the test ends.
func NewServer(t testing.TB) *Server {
	s := &Server{t: t, Folders: map[string]string{}, Dashboards: map[string]map[string]any{}, InFolder: map[string]string{}, Sources: map[string]map[string]any{}, Fail: map[string][]string{}}
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(*http.Request, map[string]any) (int, any){
		"GET /api/health":                s.health,
		"GET /api/folders/{uid}":         s.folder,
		"POST /api/folders":              s.newFolder,
		"GET /api/dashboards/uid/{uid}":  s.dashboard,
		"POST /api/dashboards/db":        s.save,
		"GET /api/datasources/uid/{uid}": s.source,
		"PUT /api/datasources/uid/{uid}": s.updateSource,
		"POST /api/datasources":          s.newSource,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, h) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s is no call that Evenhand may make", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, h func(*http.Request, map[string]any) (int, any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := r.Method + " " + r.URL.Path
	s.Calls = append(s.Calls, call)
	if r.URL.RawQuery != "" {
		s.t.Errorf("%s has the query %s", call, r.URL.RawQuery)
	}
	w.Header().Set("Content-Type", "application/json")
	name, password, _ := r.BasicAuth()
	if r.URL.Path != "/api/health" && r.Header.Get("Authorization") != "Bearer "+Token && (name != "admin" || password != Password) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message":"Invalid API key","messageId":"api-key.invalid","statusCode":401,"traceID":""}`)
		return
	}
	if next := s.Fail[call]; len(next) > 0 {
		s.Fail[call] = next[1:]
		if code, body, ok := strings.Cut(next[0], " "); ok {
			var n int
			_, _ = fmt.Sscan(code, &n)
			w.WriteHeader(n)
			fmt.Fprint(w, body)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	var sent map[string]any
	if err == nil && r.Method != http.MethodGet {
		dec := json.NewDecoder(bytes.NewReader(body))
		err = dec.Decode(&sent)
	}
	if err != nil || r.Method != http.MethodGet && r.Header.Get("Content-Type") != "application/json" || r.Method == http.MethodGet && len(body) > 0 {
		s.t.Errorf("%s: content type %q, %d bytes: %v", call, r.Header.Get("Content-Type"), len(body), err)
	}
	code, out := h(r, sent)
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.t.Error(err)
	}
}

type reply = map[string]any

// keys finds the keys of a body that a call does not know.
func (s *Server) keys(call string, body map[string]any, known ...string) {
	for k := range maps.Keys(body) {
		if !slices.Contains(known, k) {
			s.t.Errorf("%s does not know the key %q", call, k)
		}
	}
}

func notFound(what string) (int, any) {
	return http.StatusNotFound, reply{"message": what + " not found", "status": "not-found"}
}

func (s *Server) health(*http.Request, map[string]any) (int, any) {
	return http.StatusOK, reply{"commit": "abc", "database": "ok", "version": "13.2.3"}
}

func (s *Server) folder(r *http.Request, _ map[string]any) (int, any) {
	title, ok := s.Folders[r.PathValue("uid")]
	if !ok {
		return notFound("folder")
	}
	return http.StatusOK, reply{"id": 1, "uid": r.PathValue("uid"), "title": title, "url": "/dashboards/f/" + r.PathValue("uid")}
}

func (s *Server) newFolder(_ *http.Request, body map[string]any) (int, any) {
	s.keys("POST /api/folders", body, "title", "uid")
	uid, title := fmt.Sprint(body["uid"]), fmt.Sprint(body["title"])
	if _, there := s.Folders[uid]; there || title == "" {
		return http.StatusPreconditionFailed, reply{"message": "a folder with that name already exists", "status": "name-exists"}
	}
	s.Folders[uid] = title
	return http.StatusOK, reply{"id": 1, "uid": uid, "title": title}
}

func (s *Server) dashboard(r *http.Request, _ map[string]any) (int, any) {
	uid := r.PathValue("uid")
	model, ok := s.Dashboards[uid]
	if !ok {
		return notFound("Dashboard")
	}
	return http.StatusOK, reply{"dashboard": model, "meta": reply{"folderUid": s.InFolder[uid], "url": "/d/" + uid + "/x", "slug": "x", "folderId": 1}}
}

func (s *Server) save(_ *http.Request, body map[string]any) (int, any) {
	// The client always sends meta and folderId; Grafana reads folderUid where both are there.
	s.keys("POST /api/dashboards/db", body, "dashboard", "folderUid", "folderId", "meta", "overwrite", "message")
	model, _ := body["dashboard"].(map[string]any)
	uid, _ := model["uid"].(string)
	folder, _ := body["folderUid"].(string)
	if _, ok := s.Folders[folder]; !ok {
		return http.StatusBadRequest, reply{"message": "folder not found"}
	}
	if uid == "" || len(uid) > 40 || model["title"] == "" || body["folderId"] != 0.0 {
		return http.StatusBadRequest, reply{"message": "bad dashboard"}
	}
	if _, there := s.Dashboards[uid]; there && body["overwrite"] != true {
		return http.StatusPreconditionFailed, reply{"message": "A dashboard with the same uid already exists", "status": "version-mismatch"}
	}
	version := 1.0
	if old, ok := s.Dashboards[uid]["version"].(float64); ok {
		version = old + 1
	}
	model["id"], model["version"] = 7.0, version
	s.Dashboards[uid], s.InFolder[uid] = model, folder
	return http.StatusOK, reply{"id": 7, "uid": uid, "url": "/d/" + uid + "/x", "status": "success", "version": version, "slug": "x"}
}

func (s *Server) source(r *http.Request, _ map[string]any) (int, any) {
	d, ok := s.Sources[r.PathValue("uid")]
	if !ok {
		return notFound("Data source")
	}
	shown := maps.Clone(d)
	delete(shown, "secureJsonData") // Grafana never tells it
	return http.StatusOK, shown
}

var sourceKeys = []string{"uid", "name", "type", "url", "access", "readOnly", "isDefault", "basicAuth", "jsonData", "secureJsonData", "version"}

func (s *Server) newSource(_ *http.Request, body map[string]any) (int, any) {
	s.keys("POST /api/datasources", body, sourceKeys...)
	for _, d := range s.Sources {
		if d["name"] == body["name"] || d["uid"] == body["uid"] {
			return http.StatusConflict, reply{"message": "data source with the same name already exists"}
		}
	}
	body["version"] = 1.0
	s.Sources[fmt.Sprint(body["uid"])] = body
	return http.StatusOK, reply{"id": 3, "message": "Datasource added", "name": body["name"], "datasource": body}
}

func (s *Server) updateSource(r *http.Request, body map[string]any) (int, any) {
	s.keys("PUT /api/datasources/uid", body, sourceKeys...)
	old, ok := s.Sources[r.PathValue("uid")]
	if !ok {
		return notFound("Data source")
	}
	if old["readOnly"] == true {
		return http.StatusForbidden, reply{"message": "Cannot update read-only data source"}
	}
	if body["version"] != old["version"] {
		return http.StatusConflict, reply{"message": "Datasource has already been updated by someone else. Please reload and try again"}
	}
	body["version"] = old["version"].(float64) + 1
	s.Sources[r.PathValue("uid")] = body
	return http.StatusOK, reply{"id": 3, "message": "Datasource updated", "name": body["name"], "datasource": body}
}
