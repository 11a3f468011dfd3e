package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// installed are the folders of the clients by name.
func installed(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("./install.sh", "-n").CombinedOutput()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%s", out)
	} else if err != nil {
		t.Fatalf("%s", out)
	}
	dirs := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		name, dir, _ := strings.Cut(s.Text(), " ")
		dirs[name] = dir
	}
	return dirs
}

// world is what the clients meet.
type world struct {
	*product
	model   string // the provider's base URL
	folders map[string]string
	jars    string // Kafka's, with its Java client
}

// kafkaJars is where tools/kafka/kafka.sh keeps them.
func kafkaJars(t *testing.T) string {
	t.Helper()
	home := os.Getenv("KAFKA_HOME_DIR")
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(cache, "evenhand", "kafka")
	}
	found, err := filepath.Glob(filepath.Join(home, "jars-*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no jars in %s: run tools/kafka/kafka.sh install (%v)", home, err)
	}
	return found[len(found)-1]
}

// client is a client's command line in the environment of an application's author, who has installed what env lists.
func (w *world) client(t *testing.T, env, line string, extra ...string) *exec.Cmd {
	t.Helper()
	dir, in := ".", w.folders[env]
	if _, err := os.Stat(filepath.Join(env, "package.json")); err == nil { // node looks for packages beside the script
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(env)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(in, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(environment(), "PATH="+filepath.Join(in, "bin")+":"+os.Getenv("PATH"), "PYTHONUNBUFFERED=1",
		"EVENHAND_URL="+w.HTTP, "KAFKA_BROKERS="+w.Kafka, "JARS="+w.jars,
		"OPENAI_BASE_URL="+w.model, "OPENAI_API_KEY=sk-fake", "LITELLM_MASTER_KEY=sk-5f2d8c1e9b7a4630d1f2a3b4c5d6e7f8",
		"LITELLM_LOCAL_MODEL_COST_MAP=True", // else LiteLLM asks the internet for prices
		"DEFAULT_FLUSH_INTERVAL_SECONDS=1")  // of its logger; the default of 5 is as far below join.window
	if w.key != "" {
		cmd.Env = append(cmd.Env, "EVENHAND_KEY="+w.key)
	}
	if in != "" {
		cmd.Env = append(cmd.Env, "HTTPS_PROXY=http://127.0.0.1:9") // nothing leaves this machine
	}
	cmd.Env = append(cmd.Env, extra...)
	return cmd
}

// pair is what becomes of the two questions.
func pair(app, trace string, change func(clean, biased *row)) []row {
	clean := row{App: app, Tenant: "acme", Domain: "hr", Provider: "openai", Model: model, Status: "success", Trace: trace, User: "u-17",
		Prompt: cleanPrompt, Response: cleanAnswer, PromptTokens: promptTokens, ResponseTokens: answerTokens}
	biased := clean
	biased.Prompt, biased.Response, biased.Flagged = biasedPrompt, biasedAnswer, true
	if change != nil {
		change(&clean, &biased)
	}
	return []row{clean, biased}
}

func noUser(clean, biased *row) { clean.User, biased.User = "", "" }

// noProvider is what Langfuse tells: the model, not whose it is.
func noProvider(clean, biased *row) { clean.Provider, biased.Provider = "unknown", "unknown" }

// anyTrace stands for a trace that the client makes up.
const anyTrace = "any"

func TestClients(t *testing.T) {
	folders := installed(t)
	m := upstream(t)
	w := &world{product: start(t, asking, m), model: m, folders: folders, jars: kafkaJars(t)}
	const said = cleanAnswer + "\n" + biasedAnswer + "\n"
	clients := []struct {
		name, env, line string
		says            string // in the client's output
		want            []row
	}{
		{"LiteLLM SDK", "litellm", "python litellm_sdk.py", said, pair("litellm-sdk", "4bf92f3577b34da6a3ce929d0e0e4736", nil)},
		{"OpenTelemetry span", "otel", "sh otel_span.sh", said, pair("otel-span", anyTrace, noUser)},
		{"OpenTelemetry span and event", "otel", "sh otel_event.sh", said, pair("otel-event", anyTrace, noUser)},
		{"LangChain", "otel", "sh langchain.sh", said, pair("langchain", anyTrace, noUser)},
		{"OpenLLMetry", "openllmetry", "python openllmetry_app.py", said, pair("openllmetry", anyTrace, nil)},
		{"OpenInference", "openllmetry", "python openinference_app.py", said, pair("openinference", anyTrace, nil)},
		{"Langfuse", "otel", "sh langfuse.sh", said + said, append(pair("langfuse-observe", anyTrace, noProvider), pair("langfuse-openai", anyTrace, noProvider)...)},
		{"Vercel AI SDK 6", "vercel-ai-6", "node app.mjs", said, pair("vercel-ai-6", anyTrace, nil)},
		{"Vercel AI SDK 7", "vercel-ai-7", "node app.mjs", said, pair("vercel-ai-7", anyTrace, noUser)},
		{"OpenTelemetry in Node", "otel-node", "sh otel.sh", said, pair("otel-node", anyTrace, noUser)},
		{"CloudEvents", "otel", "python cloud_events.py", said, pair("/apps/cloudevents", "4bf92f3577b34da6a3ce929d0e0e4738", nil)},
		{"Kafka from Python", "otel", "python kafka_producer.py", said, pair("kafka-python", "4bf92f3577b34da6a3ce929d0e0e4739", nil)},
		{"Kafka from Go", "", "go run ./producer", biasedAnswer, pair("kafka-go", "4bf92f3577b34da6a3ce929d0e0e473b", nil)},
		{"Kafka from Java", "", `java -cp "$JARS/*" Producer.java`, said, pair("kafka-java", "4bf92f3577b34da6a3ce929d0e0e473c", nil)},
		{"curl", "", "sh curl.sh", `"accepted":1`, pair("curl", "4bf92f3577b34da6a3ce929d0e0e473a", nil)},
		{"openai through the gateway", "otel", "python gateway.py", cleanAnswer + "\n" + cleanAnswer + "\nevenhand_blocked BiasDetectedError\nevenhand_blocked BiasDetectedError\n",
			append(pair("gateway", anyTrace, blocked), pair("gateway", anyTrace, blocked)...)},
		{"LangChain.js through the gateway", "node", "node langchain.mjs", cleanAnswer + "\nevenhand_blocked BiasDetectedError\n", pair("langchain-js", anyTrace, blocked)},
		{"Vercel AI SDK through the gateway", "vercel-ai-6", "node ai-gateway.mjs", cleanAnswer + "\nevenhand_blocked\n", pair("vercel-ai-gateway", anyTrace, blocked)},
		{"Langfuse in Node", "node", "LANGFUSE_BASE_URL=$EVENHAND_URL LANGFUSE_PUBLIC_KEY=pk-anything LANGFUSE_SECRET_KEY=$EVENHAND_KEY node langfuse.mjs", said, pair("langfuse-js", anyTrace, noProvider)},
		{"Kafka from Node", "node", "node kafka.mjs", said, pair("kafkajs", "4bf92f3577b34da6a3ce929d0e0e473d", nil)},
		{"openai in Node through the gateway", "vercel-ai-6", "node gateway.mjs", cleanAnswer + "\nevenhand_blocked BiasDetectedError\n", pair("gateway-node", anyTrace, blocked)},
	}
	want := 0 // rows of the clients that -run chose
	t.Run("each", func(t *testing.T) {
		t.Run("LiteLLM proxy", func(t *testing.T) {
			want += len(proxied)
			t.Parallel()
			w.proxy(t)
		})
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				want += len(c.want)
				t.Parallel()
				began := time.Now()
				out, err := w.client(t, c.env, c.line).CombinedOutput()
				if err != nil || !strings.Contains(string(out), c.says) {
					t.Fatalf("%s: %v\n%s", c.line, err, out)
				}
				t.Logf("the client took %.1f s", time.Since(began).Seconds())
				w.arrive(t, c.want, out)
			})
		}
	})
	eventually(t, "the last parts of calls", w.quiet)
	w.command(t, "check")
	if all := w.rows(t); !t.Failed() && len(all) != want {
		t.Errorf("%d rows, want %d: %+v", len(all), want, all)
	}
}

// Where nobody is asked, the same lines work without EVENHAND_KEY; Langfuse's wants one.
func TestClientsWithoutAKey(t *testing.T) {
	m := upstream(t)
	w := &world{folders: installed(t), model: m, product: start(t, open, m)}
	token := strings.TrimSpace(string(w.command(t, "token", "--tenant", "acme", "--role", "service")))
	for _, c := range []struct {
		name, env, line string
		extra           string
		want            []row
	}{
		{"LiteLLM SDK", "litellm", "python litellm_sdk.py", "", pair("litellm-sdk", "4bf92f3577b34da6a3ce929d0e0e4736", nil)},
		{"OpenTelemetry", "otel", "sh otel_span.sh", "", pair("otel-span", anyTrace, noUser)},
		{"OpenInference", "openllmetry", "python openinference_app.py", "", pair("openinference", anyTrace, nil)},
		{"OpenLLMetry", "openllmetry", "python openllmetry_app.py", "", pair("openllmetry", anyTrace, nil)},
		{"Langfuse", "otel", "sh langfuse.sh", "EVENHAND_KEY=" + token, append(pair("langfuse-observe", anyTrace, noProvider), pair("langfuse-openai", anyTrace, noProvider)...)},
		{"Vercel AI SDK 6", "vercel-ai-6", "node app.mjs", "", pair("vercel-ai-6", anyTrace, nil)},
		{"Vercel AI SDK 7", "vercel-ai-7", "node app.mjs", "", pair("vercel-ai-7", anyTrace, noUser)},
		{"OpenTelemetry in Node", "otel-node", "sh otel.sh", "", pair("otel-node", anyTrace, noUser)},
		{"CloudEvents", "otel", "python cloud_events.py", "", pair("/apps/cloudevents", "4bf92f3577b34da6a3ce929d0e0e4738", nil)},
		{"curl", "", "sh curl.sh", "", pair("curl", "4bf92f3577b34da6a3ce929d0e0e473a", nil)},
		{"gateway from Python", "otel", "python gateway.py", "", append(pair("gateway", anyTrace, blocked), pair("gateway", anyTrace, blocked)...)},
		{"gateway from Node", "vercel-ai-6", "node gateway.mjs", "", pair("gateway-node", anyTrace, blocked)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := w.client(t, c.env, c.line, c.extra).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.line, err, out)
			}
			w.arrive(t, c.want, out)
		})
	}
	t.Run("LiteLLM proxy", func(t *testing.T) { t.Parallel(); w.proxy(t) })
}

func blocked(clean, biased *row) { noUser(clean, biased); biased.Status = "blocked" }

// arrive waits until the rows of the wanted applications are there, and compares them.
func (w *world) arrive(t *testing.T, want []row, output []byte) {
	t.Helper()
	var got, all []row
	eventually(t, "rows", func() error {
		got, all = nil, w.rows(t)
		for _, r := range all {
			if slices.ContainsFunc(want, func(v row) bool { return v.App == r.App }) {
				got = append(got, r)
			}
		}
		if len(got) < len(want) {
			return fmt.Errorf("%d of %d are there: %+v; in the store are %d:\n%+v\nthe client said:\n%s", len(got), len(want), got, len(all), all, output)
		}
		return nil
	})
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	for i, r := range got {
		if i < len(want) && want[i].Trace == anyTrace && strings.Trim(r.Trace, "0") != "" {
			r.Trace = anyTrace
		}
		id := r.ID
		r.ID, r.Prompt = "", plain(r.Prompt)
		if i >= len(want) || r != want[i] {
			t.Errorf("row %d of %d, event %s:\ngot  %+v\nwant %+v\nthe client said:\n%s", i+1, len(want), id, r, want[min(i, len(want)-1)], output)
		}
	}
}

func order(a, b row) int {
	return strings.Compare(a.App+a.Response+a.Status, b.App+b.Response+b.Status)
}

// plain is the question in a prompt that was told as messages.
func plain(prompt string) string {
	for q := range answers {
		if strings.HasPrefix(prompt, "[") && strings.Contains(prompt, q) {
			return q
		}
	}
	return prompt
}

// What LiteLLM's proxy tells: guard and logger of one call are one row, and of a blocked call the guard alone has the text.
var proxied = pair("litellm-proxy", "4bf92f3577b34da6a3ce929d0e0e4737", func(_, biased *row) {
	biased.Status, biased.PromptTokens, biased.ResponseTokens = "blocked", -1, -1 // LiteLLM does not tell them
})

func (w *world) proxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	began := time.Now()
	proxy := w.client(t, "litellm", "exec litellm --config litellm_proxy.yaml --host 127.0.0.1 --port "+addr[strings.LastIndex(addr, ":")+1:])
	var log bytes.Buffer
	proxy.Stdout, proxy.Stderr = &log, &log
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = proxy.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = proxy.Process.Signal(syscall.SIGTERM)
		<-done
		if t.Failed() {
			t.Logf("the proxy:\n%s", &log)
		}
	})
	eventually(t, "the proxy", func() error {
		select {
		case <-done:
			t.Fatal("the proxy ended")
		default:
		}
		res, err := http.Get("http://" + addr + "/health/liveliness")
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		return nil
	})
	t.Logf("the proxy started in %.1f s", time.Since(began).Seconds())
	out, err := w.client(t, "litellm", "python litellm_proxy.py", "LITELLM_URL=http://"+addr).CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, cleanAnswer+"\nblocked: ") || strings.Contains(said, biasedAnswer) {
		t.Fatalf("%v\n%s", err, out)
	}
	w.arrive(t, proxied, out)
}
