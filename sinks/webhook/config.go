package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Key is what an operator writes before the names of these settings. Default "webhook".
	Key string
	// URL gets a POST for each ticket. https, but for addresses of Allow.
	URL string
	// Secret signs each request.
	Secret string
	// Timeout bounds one request. Default 10s.
	Timeout time.Duration
	// Allow lists networks that may be reached although they are not public: loopback, private and
	// link-local addresses are refused otherwise, whatever a name resolves to.
	Allow []string
}

// DefaultConfig lacks URL and secret.
func DefaultConfig() Config { return Config{Key: "webhook", Timeout: 10 * time.Second} }

// minSecret is how long a secret is at least, in bytes.
const minSecret = 16

// Validate reports every fault, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		errs = append(errs, fmt.Errorf("%s.url: is not an http address", c.key()))
	case u.User != nil:
		errs = append(errs, fmt.Errorf("%s.url: holds a user; requests are signed with %[1]s.secret instead", c.key()))
	case u.Scheme == "http" && len(c.Allow) == 0:
		errs = append(errs, fmt.Errorf("%s.url: must be https, unless %[1]s.allow names the network it is in", c.key()))
	}
	if len(c.Secret) < minSecret {
		errs = append(errs, fmt.Errorf("%s.secret: is shorter than %d characters; make one with: openssl rand -hex 24", c.key(), minSecret))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("%s.timeout: %v is not positive", c.key(), c.Timeout))
	}
	_, _, err = c.allowed()
	return errors.Join(append(errs, err)...)
}

func (c Config) key() string { return cmp.Or(c.Key, "webhook") }

// allowed are the networks of Allow.
func (c Config) allowed() (v4, v6 []netip.Prefix, err error) {
	var errs []error
	for _, a := range c.Allow {
		p, err := netip.ParsePrefix(a)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s.allow: %q is not a network such as 10.1.0.0/16", c.key(), a))
		case p.Addr().Is4():
			v4 = append(v4, p)
		default:
			v6 = append(v6, p)
		}
	}
	return v4, v6, errors.Join(errs...)
}
