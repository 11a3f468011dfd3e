package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strings"
	"time"
)

type readyCmd struct {
	URL     string        `arg:"" optional:"" help:"Address of a process; the running 'evenhand up' or http.addr when not given."`
	DataDir string        `help:"Ask the running 'evenhand up' of this data folder." placeholder:"DIR"`
	Timeout time.Duration `help:"How long to wait for an answer." default:"5s"`
}

func (readyCmd) Help() string {
	return `Exit status 0 when /readyz answers 200; for container health checks, whose images have no curl.`
}

// Run asks /readyz.
func (cmd *readyCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	url := cmd.URL
	if url == "" {
		s, err := c.load(defaultSettings())
		if err != nil {
			return err
		}
		url = "http://" + s.HTTP.Addr
		if r, ok := findRunning(s.DataDir); ok {
			url = r.HTTP
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	return askReady(ctx, url, std.out)
}

// askReady asks a process whether it is ready; what it says of its checks goes to out.
func askReady(ctx context.Context, url string, out io.Writer) error {
	if !strings.HasSuffix(url, "/readyz") {
		url = strings.TrimSuffix(url, "/") + "/readyz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		var cause *neturl.Error
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fmt.Errorf("not ready: %s does not answer: %w", url, err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(out, io.LimitReader(res.Body, 1<<16)); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", res.Status)
	}
	return nil
}
