package audit_test

import (
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func TestProviderOf(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com": "openai", "eu.api.OpenAI.com.": "openai", "openai.com": "openai", "openai.com.example": "openai.com.example", "notopenai.com": "notopenai.com",
		"name.openai.azure.com": "azure.ai.openai", "name.services.ai.azure.com": "azure.ai.inference", "name.blob.azure.com": "name.blob.azure.com",
		"generativelanguage.googleapis.com": "gcp.gemini", "us-central1-aiplatform.googleapis.com": "gcp.vertex_ai",
		"bedrock-runtime.us-east-1.amazonaws.com": "aws.bedrock", "mine.elb.amazonaws.com": "mine.elb.amazonaws.com", "us-south.ml.cloud.ibm.com": "ibm.watsonx.ai",
		"api.x.ai": "x_ai", "ai.x": "ai.x", "127.0.0.1": "127.0.0.1", "::1": "::1", "": "",
	} {
		if got := audit.ProviderOf(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
