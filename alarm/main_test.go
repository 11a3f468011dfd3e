package alarm

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() error { return goleak.Find() }) }
