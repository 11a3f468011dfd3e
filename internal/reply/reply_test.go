package reply

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFail(t *testing.T) {
	for status, again := range map[int]string{400: "", 429: "1", 503: "5"} {
		w := httptest.NewRecorder()
		Fail(w, &Fault{status, Overloaded, "later", nil})
		if got := w.Body.String(); got != `{"error":{"code":"OVERLOADED","message":"later"}}`+"\n" || w.Code != status || w.Header().Get("Retry-After") != again {
			t.Errorf("%d: %d %q again %q", status, w.Code, got, w.Header().Get("Retry-After"))
		}
	}
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", "30")
	if Fail(w, &Fault{Status: 503}); w.Header().Get("Retry-After") != "30" {
		t.Error("what was said of the time before is lost")
	}
}

func TestJSONOfWhatIsNone(t *testing.T) {
	w := httptest.NewRecorder()
	JSON(w, 200, math.NaN())
	if w.Code != 500 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Error(w.Code, w.Header())
	}
}

func TestRecorder(t *testing.T) {
	r := Record(httptest.NewRecorder())
	if r.Answered() || r.Status() != 200 {
		t.Error("nothing was answered yet")
	}
	r.WriteHeader(http.StatusTeapot)
	r.WriteHeader(http.StatusOK)
	if !r.Answered() || r.Status() != http.StatusTeapot {
		t.Error(r.Status())
	}
	if r = Record(httptest.NewRecorder()); true {
		_, _ = r.Write(nil)
	}
	if !r.Answered() {
		t.Error("a body is an answer")
	}
}
