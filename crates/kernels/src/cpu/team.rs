//! Threads that share the iterations of one loop, and wait for the next loop without yielding their core.
//!
//! A replayed program consists of hundreds of short loops, one after another. Between two of them an idle thread of a rayon pool
//! calls `sched_yield`, which gives up a whole time slice if other processes want the core, and then sleeps. The threads of a
//! team spin for a moment instead. A loop does not wait for a late helper: others have done its share.
//!
//! With two busy processes on two cores, HIGGS training is 2.1 to 2.3 times slower instead of 2.4 to 3.3 times with rayon.
//! [`OnTeam`](crate::OnTeam) runs rayon's indexed iterators on a team, and on the current rayon pool where no team is led. A loop
//! only cuts its items into tasks; what runs tasks is compiled once, not for each loop.

#![expect(unsafe_code, reason = "helper threads call a closure that borrows from the stack of the thread that waits for them")]

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};

use rayon::iter::plumbing::{Producer, ProducerCallback};
use rayon::prelude::*;

/// The threads that run the loops of twins: the calling thread, and helpers that live as long as the team.
///
/// Inside [`lead`](Self::lead), the twins of this crate share their loops among the threads of the team. Outside, they use the
/// current rayon pool. Results are bit-identical either way.
///
/// ```
/// use brisk_kernels::{OnTeam, Team};
/// use rayon::prelude::*;
///
/// let team = Team::new("squares", 2)?;
/// let mut y = vec![0; 1000];
/// team.lead(|| y.par_chunks_mut(100).enumerate().for_each_on_team(|(i, y)| y.fill(i * i)));
/// assert_eq!(y[999], 81);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// The number of the current job, [`OPEN`] while helpers may join it, and the number of helpers at work on it.
    state: AtomicU32,
    job: AtomicPtr<Job<'static>>,
    /// For each thread, the next task of its own share. A thread that has finished its share takes tasks from the others' shares.
    next: Box<[Counter]>,
    /// For each thread, whether it is parked or about to be.
    is_parked: Box<[AtomicBool]>,
    threads: OnceLock<Box<[Thread]>>,
    is_led: AtomicBool,
    is_over: AtomicBool,
}

/// Aligned to a separate cache line, so that counting in one share does not slow down the others.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicUsize);

/// One loop.
struct Job<'a> {
    n_tasks: usize,
    /// Called with the number of the task.
    task: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// The fields of `Shared::state`.
const AT_WORK: u32 = OPEN - 1;
const OPEN: u32 = 1 << 11;
const ONE_JOB: u32 = OPEN << 1;
const JOB: u32 = !(OPEN | AT_WORK);

/// The maximum number of threads of a team.
const MOST_THREADS: usize = AT_WORK as usize;
/// How often a helper checks for the next job before it parks: for about 10 µs, longer than most gaps between the loops of a
/// program. Spinning longer gained nothing on a quiet machine, and with other busy processes it took time from the thread that
/// the helper waits for.
const SPINS: u32 = 400;
/// The number of tasks per thread that a loop is divided into, if it has enough iterations, so that the last ones end together.
const TASKS_PER_THREAD: usize = 8;

thread_local! {
    /// The team that this thread leads, while it is not inside one of the team's tasks.
    static LED: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

impl Team {
    /// A team of `n_threads` (1 to 2047), including the calling thread. The helpers are named `{name}-1` and so on.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub fn new(name: &str, n_threads: usize) -> std::io::Result<Self> {
        let n_threads = n_threads.clamp(1, MOST_THREADS);
        let shared = Arc::new(Shared {
            state: AtomicU32::new(0),
            job: AtomicPtr::default(),
            next: (0..n_threads).map(|_| Counter::default()).collect(),
            is_parked: (0..n_threads).map(|_| AtomicBool::new(false)).collect(),
            threads: OnceLock::new(),
            is_led: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let mut team = Self { shared, helpers: Vec::new() };
        for i in 1..n_threads {
            let shared = team.shared.clone();
            team.helpers.push(thread::Builder::new().name(format!("{name}-{i}")).spawn(move || shared.help(i))?);
        }
        team.shared.threads.get_or_init(|| team.helpers.iter().map(|helper| helper.thread().clone()).collect());
        Ok(team)
    }

    /// How many threads the team has, including the calling thread.
    #[must_use]
    pub fn n_threads(&self) -> usize {
        self.shared.next.len()
    }

    /// Calls `work`, whose loops are shared with the helpers. If any thread already leads the team, the loops of `work` run on
    /// the current rayon pool.
    pub fn lead<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.shared.is_led.swap(true, Ordering::Acquire) {
            return work();
        }
        let _led = Led { before: LED.replace(Some(self.shared.clone())), shared: &self.shared };
        work()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // Helpers catch the panics of their tasks, and have none of their own.
            let _ = helper.join();
        }
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("n_threads", &self.n_threads()).finish_non_exhaustive()
    }
}

/// Ends the lead, even after a panic.
struct Led<'a> {
    shared: &'a Shared,
    before: Option<Arc<Shared>>,
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        LED.set(self.before.take());
        self.shared.is_led.store(false, Ordering::Release);
    }
}

impl Shared {
    /// Executes the tasks `0..n_tasks` on all threads, and returns when all are done.
    fn run(&self, n_tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let job = Job { n_tasks, task, panic: Mutex::new(None) };
        for (worker, next) in self.next.iter().enumerate() {
            next.0.store(self.first_task(worker, n_tasks), Ordering::Relaxed);
        }
        self.job.store((&raw const job).cast::<Job<'static>>().cast_mut(), Ordering::Relaxed);
        let number = (self.state.load(Ordering::Relaxed) & JOB).wrapping_add(ONE_JOB);
        self.state.store(number | OPEN, Ordering::SeqCst);
        self.wake(n_tasks - 1);
        self.work(&job, 0);
        // All tasks are taken. Late helpers do not join; the ones at work are awaited, because `job` ends with this function.
        self.state.fetch_and(!OPEN, Ordering::Relaxed);
        while self.state.load(Ordering::Acquire) & AT_WORK != 0 {
            std::hint::spin_loop();
        }
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    /// Wakes at most `n` of the helpers that are parked.
    fn wake(&self, n: usize) {
        fence(Ordering::SeqCst);
        let threads = self.threads.get().map_or(&[][..], |threads| threads);
        for (thread, is_parked) in threads.iter().zip(&self.is_parked[1..]).take(n) {
            if is_parked.load(Ordering::Relaxed) && is_parked.swap(false, Ordering::Relaxed) {
                thread.unpark();
            }
        }
    }

    fn first_task(&self, worker: usize, n_tasks: usize) -> usize {
        n_tasks * worker / self.next.len()
    }

    /// Executes tasks until all are taken: first those of the thread's own share, then those left in other shares.
    fn work(&self, job: &Job<'_>, worker: usize) {
        let n_threads = self.next.len();
        let run = || {
            for share in (worker..n_threads).chain(0..worker) {
                let end = self.first_task(share + 1, job.n_tasks);
                loop {
                    let task = self.next[share].0.fetch_add(1, Ordering::Relaxed);
                    if task >= end {
                        break;
                    }
                    (job.task)(task);
                }
            }
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            *lock(&job.panic) = Some(panic);
        }
    }

    /// The body of a helper thread.
    fn help(&self, worker: usize) {
        let mut last = 0;
        while let Some(state) = self.next_job(worker, last) {
            if self.state.compare_exchange(state, state + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            last = state & JOB;
            // SAFETY: the job was open when this helper was counted, so `run` has not returned, and does not until the count is
            // taken back.
            let job = unsafe { &*self.job.load(Ordering::Relaxed) };
            self.work(job, worker);
            self.state.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for a job that is open and that this helper has not joined yet; `None` at the end of the team.
    fn next_job(&self, worker: usize, last: u32) -> Option<u32> {
        let open = || {
            let state = self.state.load(Ordering::SeqCst);
            (state & OPEN != 0 && state & JOB != last).then_some(state)
        };
        loop {
            for _ in 0..SPINS {
                if let Some(state) = open() {
                    return Some(state);
                }
                std::hint::spin_loop();
            }
            // `run` opens a job and then checks for parked helpers; a helper announces that it parks and then checks for a job.
            // So at least one sees the other.
            self.is_parked[worker].store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if self.is_over.load(Ordering::SeqCst) {
                return None;
            }
            if open().is_none() {
                thread::park();
            }
            self.is_parked[worker].store(false, Ordering::Relaxed);
        }
    }
}

/// Loops on the threads of the [`Team`] that the calling thread leads, or on the current rayon pool if it leads none.
pub trait OnTeam: IndexedParallelIterator {
    /// Calls `f` with every item, as rayon's [`for_each`](rayon::iter::ParallelIterator::for_each) does.
    fn for_each_on_team(self, f: impl Fn(Self::Item) + Send + Sync) {
        self.for_each_init_on_team(|| (), |(), item| f(item));
    }

    /// The same with a value that `init` makes, at most one for each thread of the team, as rayon's
    /// [`for_each_init`](rayon::iter::ParallelIterator::for_each_init) does.
    fn for_each_init_on_team<T: Send>(self, init: impl Fn() -> T + Send + Sync, f: impl Fn(&mut T, Self::Item) + Send + Sync) {
        let threads = Threads::of_this_thread();
        let n_items = self.len();
        self.with_producer(Cut { threads: &threads, n_items, init, f });
    }
}

impl<I: IndexedParallelIterator> OnTeam for I {}

/// The threads of one loop. The team has no leader meanwhile, so loops inside a task run on the current rayon pool.
struct Threads {
    team: Option<Arc<Shared>>,
}

impl Threads {
    fn of_this_thread() -> Self {
        Self { team: LED.take() }
    }

    /// Executes the tasks `0..n_tasks`. The body of each loop is compiled separately, this function once for all.
    fn run(&self, n_tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        match &self.team {
            _ if n_tasks == 1 => task(0),
            Some(team) => team.run(n_tasks, task),
            None => (0..n_tasks).into_par_iter().with_max_len(1).for_each(task),
        }
    }

    /// The number of items per task, given `n_items` in total.
    fn task_len(&self, n_items: usize, at_least: usize, at_most: usize) -> usize {
        let n_threads = self.team.as_ref().map_or_else(rayon::current_num_threads, |team| team.next.len());
        if n_threads == 1 {
            return n_items.max(1);
        }
        n_items.div_ceil(n_threads * TASKS_PER_THREAD).max(at_least).min(at_most).max(1)
    }
}

impl Drop for Threads {
    /// Restores the thread as the leader, even after a panic.
    fn drop(&mut self) {
        if let Some(team) = self.team.take() {
            LED.set(Some(team));
        }
    }
}

/// Divides the items into tasks and executes them.
struct Cut<'a, I, F> {
    threads: &'a Threads,
    n_items: usize,
    init: I,
    f: F,
}

impl<Item, T: Send, I, F> ProducerCallback<Item> for Cut<'_, I, F>
where
    I: Fn() -> T + Sync,
    F: Fn(&mut T, Item) + Sync,
{
    type Output = ();

    fn callback<P: Producer<Item = Item>>(self, producer: P) {
        let Self { threads, n_items, init, f } = self;
        let task_len = threads.task_len(n_items, producer.min_len(), producer.max_len());
        let tasks = tasks(producer, n_items, task_len);
        // Values that no task uses at the moment.
        let values = Mutex::new(Vec::new());
        threads.run(tasks.len(), &|task| {
            let Some(items) = lock(&tasks[task]).take() else { return };
            let mut value = pop(&values).unwrap_or_else(&init);
            items.into_iter().for_each(|item| f(&mut value, item));
            push(&values, value);
        });
    }
}

// These are compiled once for all loops over the same items, or with the same values.

/// The items, divided into tasks of `task_len` items; the last one may have fewer. A thread takes them when it executes the task.
fn tasks<P: Producer>(producer: P, n_items: usize, task_len: usize) -> Vec<Mutex<Option<P>>> {
    let n_tasks = n_items.div_ceil(task_len);
    let mut tasks = Vec::with_capacity(n_tasks.max(1));
    let mut rest = producer;
    for _ in 1..n_tasks {
        let (task, after) = rest.split_at(task_len);
        tasks.push(Mutex::new(Some(task)));
        rest = after;
    }
    tasks.push(Mutex::new(Some(rest)));
    tasks
}

fn pop<T>(values: &Mutex<Vec<T>>) -> Option<T> {
    lock(values).pop()
}

fn push<T>(values: &Mutex<Vec<T>>, value: T) {
    lock(values).push(value);
}

/// The data behind these locks is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::time::Duration;

    use rayon::prelude::*;

    use super::*;

    fn team(n_threads: usize) -> Team {
        Team::new("team-test", n_threads).unwrap()
    }

    #[test]
    fn every_item_is_visited_once() {
        for n_threads in [1, 2, 3] {
            let team = team(n_threads);
            for n_items in [0, 1, 2, 7, 100] {
                let mut visits = vec![0; n_items];
                team.lead(|| visits.par_iter_mut().for_each_on_team(|visits| *visits += 1));
                assert!(visits.iter().all(|&visits| visits == 1), "{n_threads} threads: {visits:?}");
            }
        }
    }

    #[test]
    fn a_parked_helper_is_woken() {
        let team = team(2);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(2));
            let both = Barrier::new(2);
            let threads = Mutex::new(HashSet::new());
            team.lead(|| {
                (0..2).into_par_iter().for_each_on_team(|_| {
                    both.wait();
                    threads.lock().unwrap().insert(thread::current().id());
                });
            });
            assert_eq!(threads.lock().unwrap().len(), 2, "each task waits for the other, so each has a thread");
        }
    }

    #[test]
    fn a_value_is_made_at_most_once_per_thread() {
        let n_made = AtomicUsize::new(0);
        let make = || n_made.fetch_add(1, Ordering::Relaxed);
        team(2).lead(|| (0..100).into_par_iter().for_each_init_on_team(make, |_, _| ()));
        assert!((1..=2).contains(&n_made.into_inner()), "two threads");
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_leader_and_the_team_goes_on() {
        let team = team(2);
        let panicking = || team.lead(|| (0..10).into_par_iter().for_each_on_team(|i| assert_ne!(i, 7, "seven")));
        let message = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
        assert!(message.downcast::<String>().unwrap().contains("seven"), "the message of the task");
        let sum = AtomicUsize::new(0);
        team.lead(|| (0..10).into_par_iter().for_each_on_team(|i| _ = sum.fetch_add(i, Ordering::Relaxed)));
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn loops_inside_tasks_and_leads_inside_leads_run_elsewhere() {
        let team = team(2);
        let sum = AtomicUsize::new(0);
        let add = |n: usize| (0..n).into_par_iter().for_each_on_team(|_| _ = sum.fetch_add(1, Ordering::Relaxed));
        team.lead(|| (0..4).into_par_iter().for_each_on_team(|_| add(5)));
        team.lead(|| team.lead(|| add(5)));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| team.lead(|| add(5)));
            }
        });
        assert_eq!(sum.into_inner(), 35);
    }
}
