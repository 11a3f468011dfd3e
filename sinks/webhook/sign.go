package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sign gives the signature's header for a body sent at a time.
func Sign(secret string, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// Window is how old, or ahead, a request's time may be for its receiver.
const Window = 5 * time.Minute

// Verify checks a signature's header against a body as a receiver does: made with the secret, within [Window]
// of now. Who also remembers the ids of deliveries of that time takes none twice.
func Verify(secret, header string, body []byte, now time.Time) error {
	t, _, ok := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	seconds, err := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil {
		return errors.New("the signature is not t=SECONDS,v1=HEX")
	}
	at := time.Unix(seconds, 0)
	if !hmac.Equal([]byte(Sign(secret, at, body)), []byte(header)) {
		return errors.New("the signature is of another body, time or secret")
	}
	if age := now.Sub(at).Abs(); age > Window {
		return fmt.Errorf("the request is %v from now; at most %v are taken", age, Window)
	}
	return nil
}
