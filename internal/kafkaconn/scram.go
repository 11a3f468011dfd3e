package kafkaconn

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
)

// scram is a client of SCRAM (RFC 5802) without channel binding, as Kafka wants it. It proves to the
// broker that we know the password and checks the broker's proof that it knows it too. Passwords are
// taken as they are, without the Unicode normalisation of SASLprep, which changes no ASCII password.
type scram struct {
	name, user, password string
	hash                 func() hash.Hash
}

// minIterations and maxIterations bound what a broker may ask for: less is an attempt to weaken the
// proof, more an attempt to keep us busy.
const (
	minIterations = 4096
	maxIterations = 10_000_000
)

func newSCRAM(mechanism, user, password string) (*scram, error) {
	if strings.ContainsAny(user, ",=") {
		user = strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user)
	}
	switch mechanism {
	case "SCRAM-SHA-256":
		return &scram{mechanism, user, password, sha256.New}, nil
	case "SCRAM-SHA-512":
		return &scram{mechanism, user, password, sha512.New}, nil
	}
	return nil, fmt.Errorf("%q is no SCRAM mechanism", mechanism)
}

// Name is the mechanism's registered name.
func (s *scram) Name() string { return s.name }

// Start opens one exchange with a fresh nonce.
func (s *scram) Start(context.Context) (sasl.StateMachine, []byte, error) {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the program instead
	return s.start(base64.StdEncoding.EncodeToString(raw[:]))
}

func (s *scram) start(nonce string) (sasl.StateMachine, []byte, error) {
	first := "n=" + s.user + ",r=" + nonce
	return &scramExchange{scram: s, nonce: nonce, firstBare: first}, []byte("n,," + first), nil
}

// scramExchange is one exchange: it answers the broker's challenge, then checks its final message.
type scramExchange struct {
	*scram
	nonce, firstBare string
	wantServer       []byte // the broker's signature, known once the challenge was answered
}

// Next handles one message of the broker; done is true after its signature was found right.
func (e *scramExchange) Next(_ context.Context, message []byte) (done bool, answer []byte, err error) {
	if e.wantServer != nil {
		return true, nil, e.checkFinal(string(message))
	}
	answer, err = e.answer(string(message))
	return false, answer, err
}

func (e *scramExchange) answer(challenge string) ([]byte, error) {
	f := fields(challenge)
	if msg, ok := f['e']; ok {
		return nil, errors.New("SCRAM: the broker refused: " + msg)
	}
	salt, err := base64.StdEncoding.DecodeString(f['s'])
	iterations, err2 := strconv.Atoi(f['i'])
	switch {
	case err != nil || len(salt) == 0 || err2 != nil:
		return nil, errors.New("SCRAM: the broker's challenge is malformed")
	case !strings.HasPrefix(f['r'], e.nonce) || len(f['r']) == len(e.nonce):
		return nil, errors.New("SCRAM: the broker's challenge does not continue our nonce")
	case iterations < minIterations || iterations > maxIterations:
		return nil, fmt.Errorf("SCRAM: the broker asks for %d iterations, outside %d..%d", iterations, minIterations, maxIterations)
	}
	salted, err := pbkdf2.Key(e.hash, e.password, salt, iterations, e.hash().Size())
	if err != nil {
		return nil, err
	}
	final := "c=biws,r=" + f['r']
	signed := e.firstBare + "," + challenge + "," + final
	clientKey := e.mac(salted, "Client Key")
	stored := e.hash()
	stored.Write(clientKey)
	proof := e.mac(stored.Sum(nil), signed)
	for i := range proof {
		proof[i] ^= clientKey[i]
	}
	e.wantServer = e.mac(e.mac(salted, "Server Key"), signed)
	return []byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func (e *scramExchange) checkFinal(message string) error {
	f := fields(message)
	if msg, ok := f['e']; ok {
		return errors.New("SCRAM: the broker refused: " + msg)
	}
	got, err := base64.StdEncoding.DecodeString(f['v'])
	if err != nil || !hmac.Equal(got, e.wantServer) {
		return errors.New("SCRAM: the broker did not prove that it knows the password")
	}
	return nil
}

func (e *scramExchange) mac(key []byte, text string) []byte {
	m := hmac.New(e.hash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// fields splits "a=1,b=2" by the attribute's letter.
func fields(s string) map[byte]string {
	m := map[byte]string{}
	for part := range strings.SplitSeq(s, ",") {
		if len(part) > 1 && part[1] == '=' {
			m[part[0]] = part[2:]
		}
	}
	return m
}
