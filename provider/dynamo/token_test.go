package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// transactions is a fake of DynamoDB that records the tokens of transactions and returns the given responses.
type transactions struct {
	responses []string // the code of an error; "lost": the connection ends; "": success
	tokens    []string
}

func (s *transactions) Do(r *http.Request) (*http.Response, error) {
	var in struct {
		ClientRequestToken string `json:"ClientRequestToken"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	code := s.responses[len(s.tokens)]
	s.tokens = append(s.tokens, in.ClientRequestToken)
	if code == "lost" {
		return nil, errors.New("read tcp: connection reset by peer")
	}
	status, body := http.StatusOK, "{}"
	if code != "" {
		status, body = http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// If the response of a transaction is lost, the retry has the same token, so it succeeds even after later writes of
// other processes. After IdempotentParameterMismatchException, the retry does not have that token.
func TestTransact_retries_reuseTheToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		responses []string
		same      []bool // whether each try has the token of the first
		fails     bool
	}{
		"at once":                       {[]string{""}, []bool{true}, false},
		"response lost":                 {[]string{"lost", ""}, []bool{true, true}, false},
		"response lost again and again": {[]string{"lost", "lost", "lost", ""}, []bool{true, true, true, true}, false},
		"first try still under way": {
			[]string{"lost", "TransactionInProgressException", ""}, []bool{true, true, true}, false,
		},
		"throttled": {[]string{"ThrottlingException", ""}, []bool{true, true}, false},
		"taken for another request": {
			[]string{"lost", "IdempotentParameterMismatchException", ""}, []bool{true, true, false}, false,
		},
		"and refused then": {
			[]string{"lost", "IdempotentParameterMismatchException", "ValidationException"},
			[]bool{true, true, false},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := &transactions{responses: c.responses}
				client := dynamodb.NewFromConfig(aws.Config{
					Region: "eu-central-1", HTTPClient: service,
					Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
						return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
					}),
				})
				p, err := New(HubConfig{Name: "h", Table: "t", InboxURL: "u"}, Clients{Table: client},
					WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					t.Fatal(err)
				}
				put := &types.Put{
					TableName: aws.String("t"),
					Item:      table.Item{table.AttrPK: table.Str("a"), table.AttrSK: table.Str("b")},
				}
				if err := p.table.Transact(t.Context(), "i-1",
					[]types.TransactWriteItem{{Put: put}}); err != nil != c.fails {
					t.Error(err)
				}
				var same []bool
				for _, token := range service.tokens {
					same = append(same, token != "" && token == service.tokens[0])
				}
				if !slices.Equal(same, c.same) {
					t.Errorf("tokens %q, want the first one: %v", service.tokens, c.same)
				}
			})
		})
	}
}
