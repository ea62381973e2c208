package tracker

import (
	"slices"

	"switchyard/storage"
)

// A place of an agent that has become free is for the first of the agent's sessions in the
// claim queue that a claim waits for. Only the engine knows the claims that wait, and a claim
// may be for the sessions of one provider alone. So claimers are woken for each provider in
// the queue, and the first claim takes the place. A wake-up too many costs one look.

// maxFreedLooked is the number of entries of the claim queue that a change looks at, beside
// the number of free places, before it wakes claimers for the providers that it has not met.
const maxFreedLooked = 64

// wakeFreed wakes claimers for up to n sessions of each provider of an agent that can work on
// n more.
func (tx *Tx) wakeFreed(agent string, n int) error {
	if n <= 0 {
		return nil
	}
	noted, err := tx.queuedProviders(agent)
	if err != nil || len(noted.names) == 0 {
		return err
	}
	n = min(n, maxConcurrent)
	providers := slices.Clone(noted.names)
	woken, engaged := make([]int, len(providers)), map[storage.ID]bool{}
	var met []string
	looked, served := 0, 0
	if err := tx.walkQueue(agent, func(e *queuedEntry, _ []byte) (bool, error) {
		if looked++; looked > maxFreedLooked+n {
			return false, nil
		}
		provider := unStr(e.provider)
		if !slices.Contains(met, provider) {
			met = append(met, provider)
		}
		at := slices.Index(providers, provider)
		if at < 0 {
			at, providers, woken = len(providers), append(providers, provider), append(woken, 0)
		}
		if woken[at] == n {
			return true, nil
		}
		held, known := engaged[e.issue]
		if !known {
			var err error
			if held, err = tx.Has(sessionEngaged, storage.Key(nil).Str(agent).ID(e.issue)); err != nil {
				return false, err
			}
			engaged[e.issue] = held
		}
		if held {
			return true, nil
		}
		tx.wakeClaimer(agent, provider)
		if woken[at]++; woken[at] == n {
			served++
		}
		return served < len(providers) || noted.more, nil
	}); err != nil {
		return err
	}
	switch {
	case served == len(providers) && !noted.more:
	case looked <= maxFreedLooked+n: // that was the whole queue
		tx.buffer.queue.noteProviders(agent, met, false)
	case noted.more:
		tx.wakeClaimersOf(agent)
	default:
		for at, provider := range providers {
			for range n - woken[at] {
				tx.wakeClaimer(agent, provider)
			}
		}
	}
	return nil
}

// maxProviders is the number of providers of an agent's queued sessions that are noted.
const maxProviders = 16

// queueProviders are providers of an agent's sessions in the claim queue.
type queueProviders struct {
	names []string // at most maxProviders; the sessions of some may have left the queue
	more  bool     // the queue may have sessions of other providers
}

// queuedProviders returns the providers of an agent's sessions in the claim queue. A search through
// the queue finds them; after that each session that enters the queue is noted.
func (tx *Tx) queuedProviders(agent string) (queueProviders, error) {
	queue := &tx.buffer.queue
	if providers, noted := queue.providers[agent]; noted {
		return providers, nil
	}
	var names []string
	more, looked := false, 0
	if err := tx.walkQueue(agent, func(e *queuedEntry, _ []byte) (bool, error) {
		if looked++; looked > maxPassedOver || len(names) > maxProviders {
			more = true
			return false, nil
		}
		if provider := unStr(e.provider); !slices.Contains(names, provider) {
			names = append(names, provider)
		}
		return true, nil
	}); err != nil {
		return queueProviders{}, err
	}
	queue.noteProviders(agent, names, more)
	return queue.providers[agent], nil
}

// noteProviders sets the providers of an agent's sessions in the queue.
func (f *queueHeads) noteProviders(agent string, names []string, more bool) {
	if f.providers == nil {
		f.providers = map[string]queueProviders{}
	}
	if len(f.providers) >= maxQueueHeads {
		clear(f.providers)
	}
	f.raised = true
	n := min(len(names), maxProviders)
	f.providers[agent] = queueProviders{names[:n], more || n < len(names)}
}

// addProvider notes that a session of an agent has entered the queue.
func (f *queueHeads) addProvider(agent, provider string) {
	known, noted := f.providers[agent]
	switch {
	case !noted || slices.Contains(known.names, provider):
		return
	case len(known.names) == maxProviders:
		known.more = true
	default:
		known.names = append(known.names, provider)
	}
	f.providers[agent] = known
}
