package linear

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// DefaultEndpoint is Linear's.
const DefaultEndpoint = "https://api.linear.app/graphql"

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// APIKey is a personal key (lin_api_…) or an OAuth token.
	APIKey string
	// Team is the key of the team that gets the issues, as it stands before their numbers: BIAS.
	Team string
	// Endpoint of the API. Default: Linear's.
	Endpoint string
	// Labels are put on each issue, and made in the team where they are missing.
	Labels []string
	// Timeout bounds one request. Default 15s.
	Timeout time.Duration
}

// DefaultConfig lacks key and team.
func DefaultConfig() Config {
	return Config{Endpoint: DefaultEndpoint, Labels: []string{"evenhand"}, Timeout: 15 * time.Second}
}

// maxLabels bounds Config.Labels: they are looked up with one query.
const maxLabels = 20

// Validate reports every fault, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	if c.APIKey == "" {
		errs = append(errs, errors.New("linear.api_key: is not set"))
	}
	if c.Team == "" {
		errs = append(errs, errors.New("linear.team: is not set; name the key of the team that gets the issues, for example BIAS"))
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		errs = append(errs, fmt.Errorf("linear.endpoint: %q is not an http address", c.Endpoint))
	case u.Scheme == "http" && !local(u.Hostname()):
		errs = append(errs, fmt.Errorf("linear.endpoint: %q would send the key in the clear; use https", c.Endpoint))
	}
	if len(c.Labels) > maxLabels {
		errs = append(errs, fmt.Errorf("linear.labels: %d are more than %d", len(c.Labels), maxLabels))
	}
	for _, l := range c.Labels {
		if l == "" || len(l) > 80 {
			errs = append(errs, fmt.Errorf("linear.labels: %q is not 1 to 80 bytes long", l))
		}
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("linear.timeout: %v is not positive", c.Timeout))
	}
	return errors.Join(errs...)
}

func local(host string) bool { return host == "127.0.0.1" || host == "localhost" || host == "::1" }

// newTransport is of one host that answers within seconds.
func newTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}
}
