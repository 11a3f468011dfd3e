// Package client is what Go applications link to be audited and guarded by Evenhand.
//
// An [Emitter] takes events and brings them to a running Evenhand, over HTTP or Kafka, without ever making the
// application wait: its buffer is bounded, what finds no room is refused and counted, and a spool on disk carries
// events over restarts and kill -9. Ids are stamped once, so whatever is sent twice is stored once.
//
// A [Transport] is an http.RoundTripper for any client of an OpenAI-compatible API. It reads chat completions and
// responses, streams too, holds what the model said against the options of seeds 000 and 001, by rules in the process
// ([InProcess], no network, no cgo; tens of microseconds) or by a running Evenhand ([Remote]), and passes bodies on
// byte for byte. An answer that may not pass becomes a [BiasDetectedError], [SafetyViolationError] or
// [HumanGateDeniedError]. What could not be judged is never taken for clean: see [UncheckedError].
//
// Errors and logs of this package hold no text of prompts or answers; the fields of the three errors and of [Report]
// do, for they are the application's own.
package client
