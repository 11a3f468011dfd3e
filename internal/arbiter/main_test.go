package arbiter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(racerEnv) != "" {
		os.Exit(racer())
	}
	enginetest.Main(m, func() error { return goleak.Find() })
}
