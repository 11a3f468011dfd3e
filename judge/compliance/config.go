package compliance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/evenhand/evenhand/detectors/pii"
)

// Config is what may be set about evaluations. Start from DefaultConfig.
type Config struct {
	// Model is the model to ask, "" the one that the client is configured with.
	Model string
	// MaxTokens bounds an answer. Default 4,096; 256..65,536. A verdict with ten findings has about 1,500.
	MaxTokens int
	// MaxChars is the number of code points that one call evaluates; longer texts are evaluated in windows of that size.
	// Default 12,000; 500..200,000.
	MaxChars int
	// Overlap is how many code points of a window the next one sees again. Default 400; 0..MaxChars/4.
	Overlap int
	// MaxWindows is how many windows of a text are evaluated, from its beginning. What lies behind is left out, the verdict says so and is
	// needs_review at least. Default 8; 1..1,000.
	MaxWindows int
	// Seed is sent to servers that repeat themselves with one; nil: none.
	Seed *int64
	// Mask puts placeholders in the place of personal data before the model sees the text; nil: it sees the text as it is.
	// Its error ends the evaluation. See MaskPersonal.
	Mask func(ctx context.Context, text string) (pii.Masked, error)

	// Random gives nonces and canaries, Now the time; for tests.
	Random io.Reader
	Now    func() time.Time
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{MaxTokens: 4096, MaxChars: 12_000, Overlap: 400, MaxWindows: 8, Random: rand.Reader, Now: time.Now}
}

// Validate reports every fault at once, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	in := func(key string, v, least, most int) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("judge.%s: %d is not in %d..%d", key, v, least, most))
		}
	}
	in("max_tokens", c.MaxTokens, 256, 65_536)
	in("max_chars", c.MaxChars, 500, 200_000)
	in("overlap", c.Overlap, 0, c.MaxChars/4)
	in("max_windows", c.MaxWindows, 1, 1000)
	if c.Random == nil || c.Now == nil {
		errs = append(errs, errors.New("judge: random and now must be set; start from DefaultConfig"))
	}
	return errors.Join(errs...)
}
