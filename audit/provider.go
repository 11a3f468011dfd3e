package audit

import "strings"

// providers by the ends of their hosts' names; the first that fits holds. Names are OpenTelemetry's (gen_ai.provider.name,
// semantic conventions 1.37) where it has one.
var providers = []struct{ host, name string }{
	{"openai.com", "openai"},
	{"openai.azure.com", "azure.ai.openai"},
	{"cognitiveservices.azure.com", "azure.ai.openai"},
	{"ai.azure.com", "azure.ai.inference"},
	{"anthropic.com", "anthropic"},
	{"cohere.ai", "cohere"},
	{"cohere.com", "cohere"},
	{"deepseek.com", "deepseek"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"googleapis.com", "gcp.vertex_ai"},
	{"groq.com", "groq"},
	{"ml.cloud.ibm.com", "ibm.watsonx.ai"},
	{"mistral.ai", "mistral_ai"},
	{"openrouter.ai", "openrouter"},
	{"perplexity.ai", "perplexity"},
	{"x.ai", "x_ai"},
}

// ProviderOf names the provider of models behind a host: a well-known one by its name, any other by the host's.
func ProviderOf(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.HasPrefix(host, "bedrock") && strings.HasSuffix(host, ".amazonaws.com") {
		return "aws.bedrock"
	}
	for _, p := range providers {
		if host == p.host || strings.HasSuffix(host, "."+p.host) {
			return p.name
		}
	}
	return host
}
