//! This machine, through a probe.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tactus_model::message::{FromProbe, ToProbe};
use tactus_model::wire::{Decoder, Item};
use tactus_system::{Child, Connection, Invocation, Real, Remote, System};

/// A probe on this machine, and the system as it is through it.
pub struct RemoteProbe {
    pub system: Remote,
    pub connection: Arc<Connection>,
    pub probe: Box<dyn Child>,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl RemoteProbe {
    pub fn begin() -> Self {
        let program = tactus_system::probe::installed(&Real).expect("a probe");
        let mut probe = Real.spawn(&Invocation::new([program.display().to_string()])).expect("a process");
        let mut stdout = probe.take_stdout().expect("a stream");
        let connection = Arc::new(Connection::new(probe.take_stdin()));
        let heard = Arc::clone(&connection);
        let (greeted, greeting) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            let mut decoder = Decoder::new();
            let mut buffer = vec![0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                for item in decoder.feed(&buffer[..length]) {
                    match item {
                        Item::Message(message) => {
                            if let Some(FromProbe::Facts { last: true, .. }) = heard.take(message) {
                                let _ = greeted.send(());
                            }
                        }
                        other => panic!("the stream is damaged: {other:?}"),
                    }
                }
            }
            heard.ended();
        });
        greeting.recv().expect("the probe says its facts");
        let system = Remote::new(Arc::clone(&connection), std::env::consts::ARCH);
        Self { system, connection, probe, listener: Some(listener) }
    }

    /// Ends the session in order.
    pub fn end(mut self) {
        self.connection.say(&ToProbe::Quit).expect("the probe listens");
        self.wait();
    }

    /// Waits for the probe's own end.
    pub fn wait(&mut self) {
        while self.probe.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        if let Some(listener) = self.listener.take() {
            listener.join().expect("the stream was whole");
        }
    }
}

/// Whether a process is there and is not a zombie.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
