//! The measurement of a network as the host side meets it: both ends in workers, everything counted, and a reason
//! when an end is lost.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::{PROBE, Probe, job, marked};
use rustix::process::{Pid, Signal, kill_process};
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Network;
use tactus_model::message::{Activity, Done, End, FromProbe, Job, Link, LinkEnd, ToProbe, What};
use tactus_model::outcome::{ValueResult, take_value};
use tactus_model::scheduling::Policy;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn network(table: Network, id: u32, cpus: CpuSet, link: Option<Link>) -> Activity {
    let what = What::Measure {
        measure: Measure::Network(table),
        interval_ns: 0,
        priority: 1,
        policy: Policy::Other,
    };
    Activity { link, ..Activity::new(id, cpus, what) }
}

fn link(end: LinkEnd, port: u16, machine: Option<LinkEnd>) -> Link {
    Link { end, own: HERE, other: HERE, port, machine }
}

/// A port that is free at the moment.
fn port() -> u16 {
    TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port()
}

fn values(heard: &[FromProbe]) -> Vec<ValueResult> {
    let mut last = Vec::new();
    for message in heard {
        if let FromProbe::Value(said) = message {
            take_value(&mut last, said.value.clone());
        }
    }
    last
}

fn of<'a>(values: &'a [ValueResult], item: &str) -> Option<&'a ValueResult> {
    values.iter().find(|value| value.item == item)
}

/// A note says why there is no value: a hypervisor took the CPUs, or the load of this machine left no time for a turn.
fn is_said(probe: &Probe, item: &str) -> bool {
    let says =
        |what: &str| probe.notes.iter().any(|note| note.text.contains(&format!("`{what}` has no value")));
    says(item) || says("network")
}

fn perform(probe: &mut Probe, activities: Vec<Activity>, duration_ns: u64) -> (Vec<ValueResult>, Done) {
    let job = job(probe, activities);
    probe.prepare(Job { duration_ns, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    let (heard, done) = probe.finish();
    (values(&heard), done)
}

#[test]
fn both_directions_of_a_loopback_are_measured_and_nothing_is_left() {
    let mark = "network";
    let mut probe = Probe::start_as(&[PROBE], mark);
    let table = Network { flows: Some(2), ..Network::default() };
    let activity = network(table, 3, probe.house().or(&probe.cpu()), None);
    let (values, done) = perform(&mut probe, vec![activity], 3_000_000_000);
    assert_eq!(done.end, End::Complete, "{done:?}");
    for item in Network::ITEMS {
        let Some(value) = of(&values, item.name) else {
            assert!(item.name.ends_with("load in guest") || is_said(&probe, item.name), "{}", item.name);
            continue;
        };
        assert_eq!((value.unit, value.better), (item.unit, item.better));
        assert!(value.value >= 0.0 && value.min <= value.value && value.value <= value.max, "{value:?}");
    }
    for way in ["TX", "RX"] {
        let own = |what: &str| of(&values, &format!("{way} {what}")).map(|value| value.value);
        let (Some(rate), Some(loss), Some(load)) = (own("throughput"), own("loss"), own("load")) else {
            continue;
        };
        assert!(rate > 0.0 && load > 0.0 && (0.0..=100.0).contains(&loss), "{values:?}");
    }
    assert_eq!(marked(mark), [probe.child.id()], "`done` says that nothing is left");
}

#[test]
fn no_more_arrives_than_is_offered_and_an_end_that_sees_no_machine_claims_no_load() {
    let mut probe = Probe::start();
    let (port, table) = (port(), Network { rate: Some(20), ..Network::default() });
    let near = network(table.clone(), 3, probe.cpu(), Some(link(LinkEnd::Near, port, None)));
    let far = network(table, 4, probe.house(), Some(link(LinkEnd::Far, port, None)));
    let (values, done) = perform(&mut probe, vec![far, near], 3_000_000_000);
    assert_eq!(done.end, End::Complete, "{done:?}");
    for way in ["TX", "RX"] {
        let throughput = of(&values, &format!("{way} throughput"));
        let Some(throughput) = throughput else {
            assert!(is_said(&probe, &format!("{way} throughput")), "{values:?}");
            continue;
        };
        assert!((0.0..22.0).contains(&throughput.value), "{throughput:?}");
        assert!(of(&values, &format!("{way} load")).is_none());
        assert!(of(&values, &format!("{way} load in guest")).is_some(), "its own kernel counts all the same");
    }
    assert!(of(&values, "load at rest").is_none());
}

#[test]
fn an_end_that_goes_in_the_middle_ends_the_measurement_with_the_reason_and_what_was_said_stays() {
    let mark = "network-far";
    let mut probe = Probe::start_as(&[PROBE], mark);
    let (port, table) = (port(), Network { rate: Some(20), ..Network::default() });
    let near = network(table.clone(), 3, probe.cpu(), Some(link(LinkEnd::Near, port, Some(LinkEnd::Near))));
    let far = network(table, 4, probe.house(), Some(link(LinkEnd::Far, port, Some(LinkEnd::Near))));
    let job = job(&probe, vec![far, near]);
    probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    while !matches!(probe.hear(), FromProbe::Value(_)) {}
    let is_far = |pid: &u32| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains("\"far ")
    };
    for pid in marked(mark).into_iter().filter(is_far) {
        // Processes that end with the first one may be gone already.
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
    }
    let (_, done) = probe.finish();
    assert_eq!(done.end, End::Failed);
    assert!(
        done.reason.as_deref().is_some_and(|why| why.contains("`network` ended before its time")),
        "{done:?}"
    );
    assert!(crate::common::eventually(|| marked(mark) == [probe.child.id()]), "{:?}", marked(mark));
}

/// How a measurement ends whose peer is this.
fn against(peer: impl FnOnce(TcpListener) + Send + 'static) -> String {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || peer(listener));
    let mut probe = Probe::start();
    let near = network(Network::default(), 3, probe.cpu(), Some(link(LinkEnd::Near, port, None)));
    let (values, done) = perform(&mut probe, vec![near], 3_600_000_000_000);
    peer.join().unwrap();
    assert_eq!((done.end, values.len()), (End::Failed, 0));
    done.reason.unwrap()
}

#[test]
fn a_peer_that_is_none_is_told_from_one_that_has_gone_and_from_nobody() {
    let gone = against(|listener| drop(listener.accept().unwrap()));
    assert!(gone.contains("the peer at 127.0.0.1"), "{gone}");
    let stranger = against(|listener| {
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut [0; 1]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap();
    });
    assert!(stranger.contains("it is not a tactus-probe"), "{stranger}");
    let nobody = against(drop);
    assert!(nobody.contains("refused"), "{nobody}");
}

const LARGEST: &str = "18446744073709551615";

#[test]
fn the_largest_numbers_that_a_peer_can_say_end_nothing_and_are_no_values() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let flow = UdpSocket::bind((HERE, 0)).unwrap();
        let mut answer = format!("{}\n", flow.local_addr().unwrap().port());
        let mut orders = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(_)) = orders.next() {
            if (&stream).write_all(answer.as_bytes()).is_err() {
                break;
            }
            // Nothing stolen, or all of it would be left out as disturbed.
            let spent = format!("{LARGEST} 0 {LARGEST} {}", [LARGEST; 6].join(" "));
            answer = format!("{} {spent}\n", [LARGEST; 3].join(" "));
        }
    });
    let mut probe = Probe::start();
    let far = Some(link(LinkEnd::Near, port, Some(LinkEnd::Far)));
    let near = network(Network::default(), 3, probe.cpu(), far);
    let (values, done) = perform(&mut probe, vec![near], 2_000_000_000);
    drop(probe);
    // If it never came, the peer still waits for it.
    drop(TcpStream::connect((HERE, port)));
    peer.join().unwrap();
    assert_eq!(done.end, End::Complete, "{done:?}");
    assert!(of(&values, "load at rest").is_some(), "{values:?}");
    assert!(values.iter().all(|value| value.value.is_finite() && value.max.is_finite()), "{values:?}");
}

#[test]
fn the_largest_times_that_a_peer_can_order_are_cut_and_nothing_overflows() {
    let mut probe = Probe::start();
    let port = port();
    let far = network(Network::default(), 4, probe.house(), Some(link(LinkEnd::Far, port, None)));
    let job = job(&probe, vec![far]);
    probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    let stream = TcpStream::connect((HERE, port)).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |order: &str| {
        (&stream).write_all(order.as_bytes()).unwrap();
        answers.next().unwrap().unwrap()
    };
    let sink = UdpSocket::bind((HERE, 0)).unwrap();
    ask(&format!("0 {}\n", sink.local_addr().unwrap().port()));
    let sent = ask(&format!("2 1 100000000 {LARGEST}\n"));
    assert!(sent.starts_with("1 "), "a message, and the next one at the end of time: {sent}");
    let numbers = ask(&format!("1 {LARGEST} 1000\n"));
    assert_eq!(numbers.split(' ').count(), 12, "{numbers}");
}
