package audit

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDerivedV4(t *testing.T) {
	a, b := DerivedV4("acme", "hr"), DerivedV4("acmeh", "r")
	if a == b || a != DerivedV4("acme", "hr") {
		t.Errorf("%s %s", a, b)
	}
	if s := a.String(); s[14] != '4' || a[8]>>6 != 2 {
		t.Errorf("%s is not of version 4", s)
	}
}

func TestBreachStatesAreClosed(t *testing.T) {
	for from, list := range BreachStates {
		for _, to := range list {
			if _, ok := BreachStates[to]; !ok {
				t.Errorf("%q leads to %q, which leads nowhere", from, to)
			}
		}
	}
}

func TestBreachJSON(t *testing.T) {
	b := Breach{ID: DerivedV4("a"), Events: []ID{DerivedV4("b")}}
	j, err := json.Marshal(b)
	if err != nil || !strings.Contains(string(j), `"breach_id":"`+b.ID.String()+`"`) {
		t.Errorf("%s %v", j, err)
	}
	var back Breach
	if err := json.Unmarshal(j, &back); err != nil || back.ID != b.ID || back.Events[0] != b.Events[0] {
		t.Errorf("%+v %v", back, err)
	}
}
