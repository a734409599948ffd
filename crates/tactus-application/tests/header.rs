//! The header in C says what the crate says, is accepted by C99 and C++ compilers, and what it writes is what the crate
//! writes.
#![expect(clippy::disallowed_methods, reason = "a test compiles and runs a program")]

use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::process::{Command, Output};

use tactus_application::layout::{
    CAPACITY, CLOCK_MONOTONIC, CLOSED, Header, MAGIC, NAME_BYTES, NO_CPU, OPEN, RING_OFFSET, Record, VERSION,
};
use tactus_application::{Application, now};

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// Compiles a program with every warning as an error.
fn compile(compiler: &str, standard: &str, source: &str, to: &Path) -> Output {
    let extension = if compiler == "c++" { "cc" } else { "c" };
    let file = to.with_extension(extension);
    fs::write(&file, source).unwrap();
    let warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-O2"];
    let mut command = Command::new(compiler);
    command.arg(standard).args(warnings).args(["-I", INCLUDE, "-o"]).arg(to).arg(&file);
    command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"))
}

fn built(compiler: &str, standard: &str, source: &str, to: &Path) {
    let result = compile(compiler, standard, source, to);
    assert!(result.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&result.stderr));
}

fn ran(program: &Path, words: &[&str]) -> String {
    let result = Command::new(program).args(words).output().unwrap();
    assert!(result.status.success(), "{result:?}");
    String::from_utf8(result.stdout).unwrap()
}

macro_rules! layout {
    ($($type:ident / $c:literal { $($field:ident),+ })+) => {
        /// Size and places of every field, as this crate has them.
        fn ours() -> Vec<(String, usize)> {
            vec![$(
                ($c.to_owned(), size_of::<$type>()),
                $((concat!($c, ".", stringify!($field)).to_owned(), offset_of!($type, $field)),)+
            )+]
        }

        /// A program that prints the same of the header.
        fn printing() -> String {
            let mut text = "#include \"tactus.h\"\nint main(void) {\n".to_owned();
            $(
                text += &format!("printf(\"{0} %zu\\n\", sizeof(struct {0}));\n", $c);
                $(text += &format!(
                    "printf(\"{0}.{1} %zu\\n\", offsetof(struct {0}, {1}));\n", $c, stringify!($field)
                );)+
            )+
            for (name, _) in constants() {
                text += &format!("printf(\"{name} %llu\\n\", (unsigned long long){name});\n");
            }
            text + "return 0;\n}\n"
        }
    };
}

layout! {
    Header / "tactus_header" {
        magic, version, record_bytes, capacity, session, clock, process, period_ns, reserved, name, reserved_too, written,
        state, reserved_at_last
    }
    Record / "tactus_record" { number, due, start, end, cpu, reserved }
}

fn constants() -> Vec<(&'static str, u64)> {
    vec![
        ("TACTUS_VERSION", VERSION.into()),
        ("TACTUS_RING_OFFSET", RING_OFFSET as u64),
        ("TACTUS_CAPACITY", CAPACITY),
        ("TACTUS_CLOCK_MONOTONIC", CLOCK_MONOTONIC.into()),
        ("TACTUS_NAME_BYTES", NAME_BYTES as u64),
        ("TACTUS_OPEN", OPEN.into()),
        ("TACTUS_CLOSED", CLOSED.into()),
        ("TACTUS_NO_CPU", NO_CPU.into()),
    ]
}

#[test]
fn the_header_and_the_crate_say_the_same_of_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("layout");
    built("cc", "-std=c99", &printing(), &program);
    let expected: String = ours()
        .into_iter()
        .map(|(name, at)| format!("{name} {at}\n"))
        .chain(constants().into_iter().map(|(name, value)| format!("{name} {value}\n")))
        .collect();
    assert_eq!(ran(&program, &[]), expected);
}

/// Three cycles, one of them without a due time; the file stays open.
const THREE: &str = r#"#include "tactus.h"
int main(int count, char **words)
{
	static struct tactus t;
	(void)count;
	if (tactus_open(&t, words[1], 1000000) != 0)
		return 1;
	tactus_start(&t, 5);
	tactus_end(&t);
	tactus_mark(&t, 0, 20, 30);
	tactus_mark(&t, 40, 50, 60);
	if (words[2] != NULL)
		tactus_close(&t);
	return 0;
}
"#;

#[test]
fn what_c_and_cpp_write_is_what_the_crate_writes() {
    let dir = tempfile::tempdir().unwrap();
    let number = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let mut files = Vec::new();
    for (compiler, standard) in [("cc", "-std=c99"), ("cc", "-std=gnu17"), ("c++", "-std=c++11")] {
        let program = dir.path().join(format!("three-{}", standard.trim_start_matches("-std=")));
        built(compiler, standard, THREE, &program);
        let file = dir.path().join("shared");
        let before = now();
        ran(&program, &[file.to_str().unwrap()]);
        let bytes = fs::read(&file).unwrap();
        let start = number(&bytes, RING_OFFSET + offset_of!(Record, start));
        let end = number(&bytes, RING_OFFSET + offset_of!(Record, end));
        assert!(before <= start && start <= end && end <= now(), "{standard}: {before} {start} {end}");
        ran(&program, &[file.to_str().unwrap(), "close"]);
        assert!(!file.exists(), "who closes removes what is his");
        files.push(bytes);
    }
    let file = dir.path().join("shared");
    let mut own = Application::open(&file, 1_000_000).unwrap();
    own.start(5);
    own.end();
    own.mark(0, 20, 30);
    own.mark(40, 50, 60);
    files.push(fs::read(&file).unwrap());
    drop(own);
    assert!(!file.exists());
    // The parts that differ in every run.
    let differs = [
        (offset_of!(Header, session), 8),
        (offset_of!(Header, process), 4),
        (offset_of!(Header, name), NAME_BYTES),
        (RING_OFFSET + offset_of!(Record, start), 16),
        (RING_OFFSET + offset_of!(Record, cpu), 4),
        (RING_OFFSET + size_of::<Record>() + offset_of!(Record, cpu), 4),
        (RING_OFFSET + 2 * size_of::<Record>() + offset_of!(Record, cpu), 4),
    ];
    for bytes in &mut files {
        assert_eq!(number(bytes, 0), MAGIC);
        assert!(bytes[offset_of!(Header, name)] != 0, "it has a name");
        for (at, length) in differs {
            bytes[at..at + length].fill(0);
        }
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "the files differ");
}

/// Cycles in which any call of the system but the one that ends it kills the program. (Seccomp's strict mode would take the
/// TSC away, too.)
const STRICT: &str = r#"#define _GNU_SOURCE
#include "tactus.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int main(int count, char **words)
{
	static struct tactus t;
	static struct sock_filter only_exit[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	static struct sock_fprog program = { 4, only_exit };
	int n;
	(void)count;
	if (tactus_open(&t, words[1], 1000000) != 0)
		return 1;
	tactus_start(&t, 5);
	tactus_end(&t);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 1;
	for (n = 0; n < 100000; n++) {
		tactus_start(&t, 5);
		tactus_end(&t);
	}
	if (words[2] != NULL)
		getppid();
	syscall(SYS_exit, 0);
	return 1;
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn no_cycle_calls_the_system() {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clock = fs::read_to_string(source).unwrap_or_default();
    // Reading any other clock source is a system call.
    if !["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"].contains(&clock.trim()) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("strict");
    built("cc", "-std=gnu17", STRICT, &program);
    let file = dir.path().join("shared");
    ran(&program, &[file.to_str().unwrap()]);
    let calls = Command::new(&program).arg(&file).arg("call").status().unwrap();
    assert_eq!(calls.code(), None, "one that calls the system is killed");
}

#[test]
fn a_file_of_another_is_replaced_and_not_removed_by_whom_it_is_not_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shared");
    let first = Application::open(&file, 0).unwrap();
    let second = Application::open(&file, 0).unwrap();
    drop(first);
    assert!(file.exists(), "it is the second one's");
    drop(second);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn where_no_file_can_be_made_nothing_is_left_and_the_reason_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("three");
    built("cc", "-std=c99", THREE, &program);
    let nowhere = dir.path().join("none/shared");
    assert!(Application::open(&nowhere, 0).is_err());
    assert_eq!(Command::new(&program).arg(&nowhere).status().unwrap().code(), Some(1));
    let taken = dir.path().join("taken");
    fs::create_dir(&taken).unwrap();
    assert!(Application::open(&taken, 0).is_err());
    assert_eq!(Command::new(&program).arg(&taken).status().unwrap().code(), Some(1));
    let left = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".1")), "a file was left");
}

#[test]
fn the_examples_and_the_guides_are_programs() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = fs::read_to_string(root.join("examples/application/cycle.c")).unwrap();
    let program = dir.path().join("cycle");
    built("cc", "-std=c99", &example, &program);
    let file = dir.path().join("shared");
    ran(&program, &[file.to_str().unwrap(), "1000", "20", "5", "2"]);
    assert!(!file.exists());
    let guide = fs::read_to_string(root.join("docs/guide/application.md")).unwrap();
    let (_, from) = guide.split_once("```c\n").expect("the guide has a program in C");
    let (text, _) = from.split_once("```").unwrap();
    let program = dir.path().join("guide");
    built("cc", "-std=c99", text, &program);
    let file = dir.path().join("guide-shared");
    ran(&program, &[file.to_str().unwrap(), "20"]);
    assert!(!file.exists());
}
