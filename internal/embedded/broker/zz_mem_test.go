package broker
import ("testing";"github.com/segmentio/kafka-go";"os";"strings";"fmt";"time";"path/filepath")
func hwm(pid int) string { raw,_ := os.ReadFile(fmt.Sprintf("/proc/%d/status",pid)); var out []string; for _, l := range strings.Split(string(raw),"\n") { if strings.HasPrefix(l,"VmHWM")||strings.HasPrefix(l,"VmRSS") { out=append(out,l) } }; return strings.Join(out," ") }
func TestMem(t *testing.T) {
	dir := os.Getenv("MEMDIR")
	p := spawn(t, dir)
	cl := client(t, p.conn)
	v := randomText(2000, 1)
	t0 := time.Now()
	for range 1100 {
		rs := make([]kafka.Record, 480)
		for i := range rs { rs[i].Value = kafka.NewBytes([]byte(v)) }
		res, err := cl.Produce(t.Context(), &kafka.ProduceRequest{Topic:"llm.interactions", RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(rs...)})
		if err != nil || res.Error != nil { t.Fatal(err, res) }
	}
	t.Log("produced", time.Since(t0), hwm(p.Process.Pid))
	_, end := bounds(t, p.conn, "llm.interactions")
	p.kill()
	snaps, _ := filepath.Glob(dir+"/log/partitions/*/snapshot.json")
	t.Log(snaps)
	t0 = time.Now()
	p = spawn(t, dir)
	t.Log("reopened", time.Since(t0), hwm(p.Process.Pid))
	_, end2 := bounds(t, p.conn, "llm.interactions")
	t.Log(end, end2, len(values(t, p.conn, "llm.interactions", end-1000)))
	p.kill()
	t0 = time.Now()
	p = spawn(t, dir)
	t.Log("reopened again", time.Since(t0), hwm(p.Process.Pid))
	p.kill()
}
