package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/e2e/app"
	"github.com/perdure/perdure/tests/scenarios"
)

// large exceeds the limit for payloads in histories, and no other limit.
var large = strings.Repeat("0123456789", 25<<10)

// payloadBucket is the bucket of the hub.
type payloadBucket struct {
	dynamo.BucketAPI
	name string
}

func openBucket(t *testing.T) payloadBucket {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := dynamo.Open(t.Context(), "e2e")
	if err != nil {
		t.Fatal(err)
	}
	return payloadBucket{dynamo.NewBucket(cfg), p.Config().PayloadBucket}
}

// keys returns the keys of all objects.
func (b payloadBucket) keys(t *testing.T) (keys []string) {
	t.Helper()
	for after := ""; ; after = keys[len(keys)-1] {
		page, err := b.ListObjects(t.Context(), b.name, "", after)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return keys
		}
		for i := range page {
			keys = append(keys, page[i].Key)
		}
	}
}

// ofExecutions returns the keys of objects that belong to executions. Other objects belong to messages and expire.
func ofExecutions(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !strings.HasPrefix(key, "e2e/x/") })
}

// bulkyTag is the tag with the ID of the instance.
const bulkyTag = "bulky"

// bulkyInstance runs a scenario with large payloads, and returns the keys of the objects of its executions. Other tests
// must not store objects in the meantime.
func bulkyInstance(t *testing.T, b payloadBucket, c *client.Client, name, instance string) []string {
	t.Helper()
	before := b.keys(t)
	all := scenarios.All(scenarioTick)
	s := all[slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == name })]
	s.Start = append(s.Start, client.WithTags(map[string]string{bulkyTag: instance}))
	r := runScenario(t.Context(), c, s, instance)
	if r.err != nil {
		t.Fatal(r.err)
	}
	own := ofExecutions(slices.DeleteFunc(b.keys(t), func(key string) bool { return slices.Contains(before, key) }))
	if len(own) == 0 {
		t.Fatal("got no payloads of the instance in the bucket")
	}
	return own
}

// wantGone fails the test unless the objects of a purged instance are deleted and the other objects are not.
func (b payloadBucket) wantGone(t *testing.T, instance string, own, others []string) {
	t.Helper()
	left := b.keys(t)
	for _, key := range own {
		if slices.Contains(left, key) {
			t.Errorf("after the purge of %s: payload %s remains", instance, key)
		}
	}
	for _, key := range others {
		if !slices.Contains(left, key) {
			t.Errorf("after the purge of %s: payload %s of another instance was deleted", instance, key)
		}
	}
}

// A purge through the API, the command line or a job deletes the objects of the instance. Each uses its own
// permissions.
func TestPurge_largePayloads_areDeleted(t *testing.T) {
	b := openBucket(t)
	stays := bulkyInstance(t, b, hub.client, "LargeContinuesAsNew", id(t, 0))

	own := bulkyInstance(t, b, hub.client, "LargeContinuesAsNew", id(t, 1)) // an instance with several executions
	if status, body := remove(t, id(t, 1), ""); status != http.StatusNoContent {
		t.Fatalf("got HTTP %d: %s", status, body)
	}
	b.wantGone(t, id(t, 1), own, stays)

	own = bulkyInstance(t, b, hub.client, "LargeChildren", id(t, 2))
	if out, exit := perdure(t, "purge", id(t, 2), "--with-children"); exit != 0 {
		t.Fatalf("got exit code %d: %s", exit, out)
	}
	b.wantGone(t, id(t, 2), own, stays)

	own = bulkyInstance(t, b, hub.client, "LargeActivities", id(t, 3))
	job, err := hub.admin.StartJob(t.Context(), admin.JobRequest{
		Operation: admin.OperationPurge, Filter: admin.Filter{Tags: map[string]string{bulkyTag: id(t, 3)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		look(t)
		if job, err = hub.admin.Job(t.Context(), job.ID); err != nil || job.Ended() {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if err != nil || job.Done != 1 {
		t.Fatalf("got %+v, error %v", job, err)
	}
	b.wantGone(t, id(t, 3), own, stays)
}

// look invokes the renewer for a sweep, like its EventBridge rule.
func look(t *testing.T) {
	t.Helper()
	lambda(t, http.MethodPost, "/functions/perdure-e2e-renewer/invocations", fmt.Sprintf(
		`{"version":"0","id":"test","detail-type":"Scheduled Event","source":"aws.events","time":%q,"resources":[],"detail":{}}`, time.Now().UTC().Format(time.RFC3339)))
}

// The API reads objects with the permissions of its function. It returns encrypted payloads encrypted, because it has
// no codec.
func TestAPI_largeOutput_isReturned(t *testing.T) {
	for n, prefix := range []string{"", app.EncryptedPrefix} {
		c := []*client.Client{hub.client, hub.encrypting}[n]
		if _, err := c.Start(t.Context(), "hello", large, client.WithInstanceID(prefix+id(t, n))); err != nil {
			t.Fatal(err)
		}
	}
	status, _, result := request(t, "GET", "/instances/"+id(t, 0)+"/result?wait=20s", "")
	if status != http.StatusOK || result["output"] != "hello, "+large {
		t.Errorf("got HTTP %d: %.100v", status, result)
	}
	status, _, result = request(t, "GET", "/instances/"+app.EncryptedPrefix+id(t, 1)+"/result?wait=20s", "")
	sealed, _ := json.Marshal(result["outputSealed"])
	if status != http.StatusOK || result["output"] != nil || !bytes.Contains(sealed, []byte(`"codec":"e2e"`)) {
		t.Errorf("encrypted: got HTTP %d: %.300v", status, result)
	}
}

// Neither the history nor the bucket has plain text of encrypted payloads.
func TestCodec_encryptedPayloads_areStoredEncrypted(t *testing.T) {
	b := openBucket(t)
	instance := app.EncryptedPrefix + id(t, 0)
	own := bulkyInstance(t, b, hub.encrypting, "LargeActivities", instance)
	for _, key := range own {
		data, err := b.GetObject(t.Context(), b.name, key, provider.MaxStoredPayloadBytes)
		if err != nil || bytes.Contains(data, []byte("0123456789")) {
			t.Errorf("%s: got %.40q, error %v", key, data, err)
		}
	}
	for e, err := range hub.client.History(t.Context(), instance) {
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(e); bytes.Contains(text, []byte("0123456789")) {
			t.Errorf("event %d: got %.100s", e.ID, text)
		}
	}
}

// The doctor command reads the lifecycle rules of the bucket and reports no problem.
func TestDoctor_bucketLifecycle_reportsNoProblem(t *testing.T) {
	if out, exit := perdure(t, "doctor", "--hub", "e2e"); exit == 1 || strings.Contains(out, "bucket") {
		t.Errorf("got exit code %d: %s", exit, out)
	}
}
