package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// launcher starts processes on one thread that lives as long as this program: the kernel kills them
// when that thread ends, so nothing outlives a crash of the crash test.
type launcher struct{ work chan func() }

func newLauncher() *launcher {
	l := &launcher{make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range l.work {
			f()
		}
	}()
	return l
}

// process is one that is ours.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	ours   atomic.Bool // we ended it
}

// launch starts a command whose errors go to a log file of the given name, several runs to one.
func (w *world) launch(cmd *exec.Cmd, name string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(w.opt.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	w.launcher.work <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.exited) }()
	return p, nil
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	p.ours.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// end asks the process to stop, and kills it when it takes too long.
func (p *process) end(patience time.Duration) {
	p.ours.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.exited:
	case <-t.C:
		p.kill()
	}
}

// pause stops the process for a while; it then goes on where it was.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	rest(ctx, d)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// killedItself tells whether a failpoint ended it.
func (p *process) killedItself() bool {
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL && !p.ours.Load()
}
