//! A channel from one thread to another. The channels of the standard library are three in one, each compiled again for
//! every type: 30 kB of the probe.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::reading::lock;

#[derive(Debug)]
struct Between<T> {
    told: Mutex<(VecDeque<T>, bool)>,
    news: Condvar,
}

/// The sending end. When it is dropped, no more news comes.
#[derive(Debug)]
pub struct Tell<T>(Arc<Between<T>>);

/// The receiving end.
#[derive(Debug)]
pub struct Told<T>(Arc<Between<T>>);

/// The result of waiting for news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// This.
    News(T),
    /// No news in that time.
    Nothing,
    /// No news, and the sender is gone.
    Over,
}

/// The two ends.
#[must_use]
pub fn ends<T>() -> (Tell<T>, Told<T>) {
    let between = Arc::new(Between { told: Mutex::new((VecDeque::new(), false)), news: Condvar::new() });
    (Tell(Arc::clone(&between)), Told(between))
}

impl<T> Tell<T> {
    /// Tells it.
    pub fn tell(&self, news: T) {
        lock(&self.0.told).0.push_back(news);
        self.0.news.notify_one();
    }
}

impl<T> Drop for Tell<T> {
    fn drop(&mut self) {
        lock(&self.0.told).1 = true;
        self.0.news.notify_one();
    }
}

impl<T> Told<T> {
    /// Waits for what comes next, in its order.
    #[must_use]
    pub fn hear(&self) -> Option<T> {
        match self.hear_until(None) {
            Heard::News(news) => Some(news),
            _ => None,
        }
    }

    /// The same, but waits no longer than `patience`.
    #[must_use]
    pub fn hear_within(&self, patience: Duration) -> Heard<T> {
        self.hear_until(Instant::now().checked_add(patience))
    }

    fn hear_until(&self, until: Option<Instant>) -> Heard<T> {
        let mut told = lock(&self.0.told);
        loop {
            if let Some(news) = told.0.pop_front() {
                return Heard::News(news);
            }
            if told.1 {
                return Heard::Over;
            }
            let left = until
                .map_or(Duration::from_secs(3_600), |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Heard::Nothing;
            }
            // A panic of another thread cannot have left wrong data.
            told = match self.0.news.wait_timeout(told, left) {
                Ok((told, _)) => told,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_in_its_order_and_then_it_is_over() {
        let (tell, told) = ends();
        assert_eq!(told.hear_within(Duration::from_millis(1)), Heard::Nothing);
        tell.tell(1);
        tell.tell(2);
        drop(tell);
        assert_eq!((told.hear(), told.hear_within(Duration::ZERO)), (Some(1), Heard::News(2)));
        assert_eq!((told.hear_within(Duration::MAX), told.hear()), (Heard::Over, None));
    }

    #[test]
    fn one_who_waits_is_woken_by_news_and_by_the_end() {
        let (tell, told) = ends();
        let heard = std::thread::spawn(move || (told.hear(), told.hear()));
        std::thread::sleep(Duration::from_millis(5));
        tell.tell("news");
        std::thread::sleep(Duration::from_millis(5));
        drop(tell);
        assert_eq!(heard.join().unwrap(), (Some("news"), None));
    }
}
