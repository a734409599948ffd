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

/// The sending end. When it is dropped, the channel is closed.
#[derive(Debug)]
pub struct Sender<T>(Arc<Between<T>>);

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Between<T>>);

/// The result of waiting for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// The next item.
    Item(T),
    /// No item in that time.
    Nothing,
    /// No item, and the sender is gone.
    Closed,
}

/// The two ends.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let between = Arc::new(Between { told: Mutex::new((VecDeque::new(), false)), news: Condvar::new() });
    (Sender(Arc::clone(&between)), Receiver(between))
}

impl<T> Sender<T> {
    /// Sends it.
    pub fn send(&self, news: T) {
        lock(&self.0.told).0.push_back(news);
        self.0.news.notify_one();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        lock(&self.0.told).1 = true;
        self.0.news.notify_one();
    }
}

impl<T> Receiver<T> {
    /// Waits for what comes next, in its order.
    #[must_use]
    pub fn receive(&self) -> Option<T> {
        match self.receive_until(None) {
            Received::Item(news) => Some(news),
            _ => None,
        }
    }

    /// The same, but waits no longer than `patience`.
    #[must_use]
    pub fn receive_within(&self, patience: Duration) -> Received<T> {
        self.receive_until(Instant::now().checked_add(patience))
    }

    fn receive_until(&self, until: Option<Instant>) -> Received<T> {
        let mut told = lock(&self.0.told);
        loop {
            if let Some(news) = told.0.pop_front() {
                return Received::Item(news);
            }
            if told.1 {
                return Received::Closed;
            }
            let left = until
                .map_or(Duration::from_secs(3_600), |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Received::Nothing;
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
    fn items_arrive_in_their_order_and_then_the_channel_is_closed() {
        let (sender, receiver) = channel();
        assert_eq!(receiver.receive_within(Duration::from_millis(1)), Received::Nothing);
        sender.send(1);
        sender.send(2);
        drop(sender);
        assert_eq!(
            (receiver.receive(), receiver.receive_within(Duration::ZERO)),
            (Some(1), Received::Item(2))
        );
        assert_eq!((receiver.receive_within(Duration::MAX), receiver.receive()), (Received::Closed, None));
    }

    #[test]
    fn a_waiting_receiver_is_woken_by_an_item_and_by_the_end() {
        let (sender, receiver) = channel();
        let received = std::thread::spawn(move || (receiver.receive(), receiver.receive()));
        std::thread::sleep(Duration::from_millis(5));
        sender.send("news");
        std::thread::sleep(Duration::from_millis(5));
        drop(sender);
        assert_eq!(received.join().unwrap(), (Some("news"), None));
    }
}
