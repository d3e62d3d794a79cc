//! The one thread that owns the cluster, and the bounded queue before it.
//!
//! Whoever waits when the thread is free again is taken together: that is the batch window, and it costs nobody any
//! waiting. Of those, calls to score that stand next to each other share one evaluation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::fault::ServeError;
use super::live::{Live, ScoreCall, Scored};

/// The most calls that are taken together.
const MOST_TOGETHER: usize = 256;

/// What is done with the cluster, or told why not.
type Work = Box<dyn FnOnce(Result<&mut Live, ServeError>) + Send>;

/// What waits for the thread.
enum Task {
    /// Anything.
    Run(Option<Instant>, Work),
    /// Candidates to score.
    Score(Option<Instant>, ScoreCall, oneshot::Sender<Result<Scored, ServeError>>),
}

/// What the thread has done, for those who measure.
#[derive(Debug, Default)]
pub struct EngineCounts {
    /// Calls that were answered.
    pub calls: AtomicU64,
    /// Evaluations, each of one or more calls to score.
    pub evaluations: AtomicU64,
    /// Calls to score that were part of those.
    pub scored: AtomicU64,
    /// Calls whose deadline had passed before their turn.
    pub late: AtomicU64,
    /// Calls that found the queue full.
    pub busy: AtomicU64,
}

/// A way to the thread; it ends when the last of these is gone.
#[derive(Clone, Debug)]
pub struct Engine {
    tasks: mpsc::Sender<Task>,
    counts: Arc<EngineCounts>,
}

impl Engine {
    /// Starts the thread; at most `depth` calls wait for it.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(live: Live, depth: usize) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (tasks, waiting) = mpsc::channel(depth.max(1));
        let counts = Arc::new(EngineCounts::default());
        let own = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("engine".to_owned()).spawn(move || work(live, waiting, &own))?;
        Ok((Self { tasks, counts }, thread))
    }

    /// What the thread has done so far.
    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.tasks.max_capacity() - self.tasks.capacity()
    }

    /// Runs `work` on the cluster when its turn comes, unless the deadline has passed by then. After the deadline nobody
    /// waits for the answer any more.
    ///
    /// # Errors
    /// What `work` says; or that too many wait, it is too late, or the service closes.
    pub async fn run<R: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Live) -> Result<R, ServeError> + Send + 'static,
    ) -> Result<R, ServeError> {
        let (answer, answered) = oneshot::channel();
        let span = tracing::Span::current();
        let task = Box::new(move |live: Result<&mut Live, ServeError>| {
            let done = span.in_scope(|| live.and_then(work));
            // Who asked may have gone; what was done stays done.
            let _ = answer.send(done);
        });
        self.ask(Task::Run(deadline, task), deadline, answered).await
    }

    /// Scores candidates, together with those of others who wait.
    ///
    /// # Errors
    /// As for [`Engine::run`].
    pub async fn score(&self, deadline: Option<Instant>, call: ScoreCall) -> Result<Scored, ServeError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Task::Score(deadline, call, answer), deadline, answered).await
    }

    async fn ask<R>(
        &self,
        task: Task,
        deadline: Option<Instant>,
        answered: oneshot::Receiver<Result<R, ServeError>>,
    ) -> Result<R, ServeError> {
        self.tasks.try_send(task).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                self.counts.busy.fetch_add(1, Ordering::Relaxed);
                ServeError::Busy
            }
            mpsc::error::TrySendError::Closed(_) => ServeError::Closing,
        })?;
        let answered = match deadline {
            None => answered.await,
            Some(deadline) => match tokio::time::timeout_at(deadline.into(), answered).await {
                Ok(answered) => answered,
                Err(_) => return Err(ServeError::Late),
            },
        };
        answered.unwrap_or(Err(ServeError::Closing))
    }
}

/// Works until nobody can ask any more.
fn work(mut live: Live, mut waiting: mpsc::Receiver<Task>, counts: &EngineCounts) {
    let mut together = Vec::with_capacity(MOST_TOGETHER);
    while waiting.blocking_recv_many(&mut together, MOST_TOGETHER) > 0 {
        let mut scoring = Vec::new();
        for task in together.drain(..) {
            match task {
                Task::Score(deadline, call, answer) => {
                    if in_time(deadline, counts) {
                        scoring.push((call, answer));
                    } else {
                        let _ = answer.send(Err(ServeError::Late));
                    }
                }
                Task::Run(deadline, task) => {
                    score(&mut live, &mut scoring, counts);
                    if in_time(deadline, counts) {
                        counts.calls.fetch_add(1, Ordering::Relaxed);
                        guarded(&mut live, |live| task(Ok(live)));
                    } else {
                        task(Err(ServeError::Late));
                    }
                }
            }
        }
        score(&mut live, &mut scoring, counts);
    }
}

fn in_time(deadline: Option<Instant>, counts: &EngineCounts) -> bool {
    let in_time = deadline.is_none_or(|deadline| Instant::now() < deadline);
    if !in_time {
        counts.late.fetch_add(1, Ordering::Relaxed);
    }
    in_time
}

type Scoring = Vec<(ScoreCall, oneshot::Sender<Result<Scored, ServeError>>)>;

/// Scores what has been gathered.
fn score(live: &mut Live, gathered: &mut Scoring, counts: &EngineCounts) {
    if gathered.is_empty() {
        return;
    }
    let n = gathered.len() as u64;
    counts.evaluations.fetch_add(1, Ordering::Relaxed);
    counts.scored.fetch_add(n, Ordering::Relaxed);
    counts.calls.fetch_add(n, Ordering::Relaxed);
    let (calls, answers): (Vec<_>, Vec<_>) = gathered.drain(..).unzip();
    guarded(live, |live| {
        for (scored, answer) in live.score(calls).into_iter().zip(answers) {
            let _ = answer.send(scored);
        }
    });
}

/// A fault of the program must not end the service. What was being changed cannot be trusted then: it is dropped, and
/// callers are told to put it again.
fn guarded(live: &mut Live, work: impl FnOnce(&mut Live)) {
    if catch_unwind(AssertUnwindSafe(|| work(live))).is_err() {
        tracing::error!("a call panicked: the cluster is dropped, and must be put again");
        live.drop_cluster();
    }
}
