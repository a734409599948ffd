//! The conversation of both ends, over TCP: orders and their results, as lines of numbers.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::flows::Did;
use super::machine::{NUMBERS, Spent};
use crate::sys;

/// The longest line: sixty-four ports.
const LONGEST: u64 = 1024;
/// How often a waiting end checks whether to continue.
const LOOK: Duration = Duration::from_millis(50);
/// How long an answer may take before the other end counts as gone, in ns.
const PATIENCE_NS: u64 = 5_000_000_000;

/// An order of the near end, sent as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The ports of its flows.
    Ports,
    /// Count CPU time for this many ns.
    Rest,
    /// Send to it.
    Send,
    /// Receive from it.
    Receive,
    /// Send back what comes.
    Echo,
    /// Stop an order without a set end.
    Stop,
}

impl Word {
    const ALL: [Self; 6] = [Self::Ports, Self::Rest, Self::Send, Self::Receive, Self::Echo, Self::Stop];

    const fn number(self) -> u64 {
        self as u64
    }

    /// The word of a number.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.number() == number)
    }
}

/// The result of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The counts of the flows.
    pub did: Did,
    /// The machine's time meanwhile.
    pub spent: Spent,
}

impl Answer {
    /// As it travels.
    pub fn numbers(self) -> Vec<u64> {
        let Did { messages, bits_per_second, reordered, .. } = self.did;
        [&[messages, bits_per_second, reordered][..], &self.spent.numbers()].concat()
    }

    /// From the numbers of a message.
    pub fn of(numbers: &[u64]) -> Option<Self> {
        let ([messages, bits_per_second, reordered], rest) = numbers.split_first_chunk()?;
        let spent: [u64; NUMBERS] = rest.try_into().ok()?;
        let did = Did {
            messages: *messages,
            bits_per_second: *bits_per_second,
            reordered: *reordered,
            under_way_ns: 0,
        };
        Some(Self { did, spent: Spent::from_numbers(spent) })
    }
}

/// A connection between the two ends.
pub struct Control(BufReader<TcpStream>);

impl Control {
    /// Takes over a connection.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Says something.
    ///
    /// # Errors
    /// When the other end has gone.
    pub fn say(&mut self, numbers: &[u64]) -> io::Result<()> {
        let line = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ") + "\n";
        self.0.get_mut().write_all(line.as_bytes())
    }

    /// The next message of the other end; `None`: the wait is over.
    ///
    /// # Errors
    /// When it has gone, or its message cannot be read.
    pub fn hear(&mut self, mut goes_on: impl FnMut() -> bool) -> io::Result<Option<Vec<u64>>> {
        let mut line = String::new();
        while goes_on() {
            // The part of a line before a pause counts as well: a slow line also has an end.
            let left = LONGEST.saturating_sub(line.len() as u64);
            match self.0.by_ref().take(left).read_line(&mut line) {
                Ok(_) if line.ends_with('\n') => return numbers(&line).map(Some),
                Ok(_) if line.len() as u64 >= LONGEST => return Err(no_probe()),
                Ok(_) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it has ended")),
                Err(error) if is_nothing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Gives an order that takes `takes_ns`, and waits for its answer.
    ///
    /// # Errors
    /// When the other end has gone, or does not answer.
    pub fn ask(&mut self, word: Word, numbers: &[u64], takes_ns: u64) -> io::Result<Vec<u64>> {
        self.say(&[&[word.number()], numbers].concat())?;
        let until = sys::now() + takes_ns + PATIENCE_NS;
        let answer = self.hear(|| sys::now() < until)?;
        answer.ok_or_else(|| io::Error::new(ErrorKind::TimedOut, "it does not answer"))
    }
}

/// The ports that the other end has said.
///
/// # Errors
/// When a number is not a port.
pub fn ports(numbers: &[u64]) -> io::Result<Vec<u16>> {
    let ports: Option<_> = numbers.iter().map(|port| u16::try_from(*port).ok()).collect();
    ports.ok_or_else(|| ErrorKind::InvalidData.into())
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn numbers(line: &str) -> io::Result<Vec<u64>> {
    let numbers = line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>();
    numbers.map_err(|_| no_probe())
}

fn no_probe() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it is not a tactus-probe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_is_written() {
        let did = Did { messages: 1, bits_per_second: 2, reordered: 3, under_way_ns: 0 };
        let answer = Answer { did, spent: Spent::from_numbers([4, 5, 6, 7, 8, 9, 10, 11, 12]) };
        assert_eq!(Answer::of(&answer.numbers()), Some(answer));
        assert_eq!(Answer::of(&[1, 2, 3]), None);
        assert_eq!(Answer::of(&[0; 13]), None);
        for word in Word::ALL {
            assert_eq!(Word::of(word.number()), Some(word));
        }
        assert_eq!(Word::of(6), None);
    }

    #[test]
    fn a_line_that_never_ends_is_no_answer_however_slowly_it_comes() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = listener.accept().unwrap().0;
        let talking = std::thread::spawn(move || {
            // In the pauses the listener checks whether to continue.
            while peer.write_all(&[b'1'; 300]).is_ok() {
                std::thread::sleep(2 * LOOK);
            }
        });
        let mut control = Control::new(stream).unwrap();
        let mut looks = 0;
        let heard = control.hear(|| {
            looks += 1;
            looks < 1_000
        });
        assert!(heard.unwrap_err().to_string().contains("it is not a tactus-probe"));
        drop(control);
        talking.join().unwrap();
    }

    #[test]
    fn what_is_no_number_is_no_answer() {
        assert_eq!(numbers("1 22 \n").unwrap(), [1, 22]);
        assert!(numbers("1 x\n").is_err() && numbers("-1\n").is_err());
    }
}
