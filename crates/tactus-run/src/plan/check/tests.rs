//! Plans that are refused before anything runs.

use tactus_system::Memory;

use super::*;
use crate::plan::parse;

#[test]
fn a_name_that_no_file_could_have_is_refused_before_anything_runs() {
    let check = |environment: &str, state: &str| {
        let text = format!(
            "name = \"x\"\n[environment.\"{environment}\"]\nkind = \"host\"\n[host-state.\"{state}\"]\nprofile = \
             \"cpu-partitioning\"\n[[scenario]]\nname = \"a\"\nenvironment = \"{environment}\"\nmeasurement = \
             \"timer\"\n"
        );
        let source = Source::new("a.toml", text.as_str());
        check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    let (fits, long) = ("n".repeat(LONGEST_NAME), "n".repeat(300));
    check(&fits, &fits).unwrap();
    for (environment, state) in [(&*long, "tuned"), ("host", &*long), (&"/".repeat(50), "tuned")] {
        let error = check(environment, state).unwrap_err();
        assert!(error.hint.unwrap().contains("at most 100"));
    }
}

#[test]
fn what_would_take_longer_than_a_year_is_refused() {
    let check = |duration: &str| {
        let text = format!(
            "name = \"x\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"a\"\nenvironment = \
             \"host\"\nmeasurement = \"timer\"\nduration = \"{duration}\"\n"
        );
        let source = Source::new("a.toml", text.as_str());
        check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    check("8760h").unwrap();
    for long in ["8761h", "18446744073s"] {
        assert!(check(long).unwrap_err().to_string().contains("longer than a year"), "{long}");
    }
}

#[test]
fn a_separation_has_no_more_cells_than_anybody_reads() {
    let check = |places: usize, made: usize| {
        let mut text = "name = \"x\"\n".to_owned();
        for n in 0..places {
            text += &format!("[environment.e{n}]\nkind = \"host\"\n");
        }
        let names: Vec<String> = (0..places).map(|n| format!("\"e{n}\"")).collect();
        let loads = vec!["{ load = \"cpu\" }"; made].join(", ");
        text += &format!("[separation]\nenvironments = [{}]\ndisturb = [{loads}]\n", names.join(", "));
        let source = Source::new("a.toml", text.as_str());
        check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    check(4, 3).unwrap();
    for (places, made) in [(33, 1), (16, 33)] {
        let said = check(places, made).unwrap_err().to_string();
        assert!(said.contains(&format!("{made} disturbances in each of {places} environments")), "{said}");
    }
}

#[test]
fn a_comparison_is_asked_for_once_and_not_with_itself_and_there_is_an_end_to_them() {
    let check = |pairs: &[(String, String)]| {
        let mut text = "name = \"x\"\n[environment.host]\nkind = \"host\"\n".to_owned();
        for name in 0..40 {
            text += &format!(
                "[[scenario]]\nname = \"{name}\"\nenvironment = \"host\"\nmeasurement = \"timer\"\n"
            );
        }
        for (base, with) in pairs {
            text += &format!("[[compare]]\nname = \"c\"\nbase = \"{base}\"\nwith = \"{with}\"\n");
        }
        let source = Source::new("a.toml", text.as_str());
        check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    let pair = |base: usize, with: usize| (base.to_string(), with.to_string());
    check(&[pair(0, 1), pair(1, 0), pair(0, 2)]).unwrap();
    let twice = check(&[pair(0, 1), pair(0, 2), pair(0, 1)]).unwrap_err();
    assert!(twice.to_string().contains("`1` is compared with `0` a second time"), "{twice}");
    assert!(twice.hint.is_some());
    let itself = check(&[pair(3, 3)]).unwrap_err();
    assert!(itself.to_string().contains("`3` is compared with itself"), "{itself}");
    let many: Vec<_> = (0..40).flat_map(|base| (0..base).map(move |with| pair(base, with))).collect();
    check(&many[..MOST_COMPARED]).unwrap();
    assert!(check(&many).unwrap_err().to_string().contains("more than 256 comparisons"));
    let figure = "[[figure]]\nkind = \"histogram\"\ntitle = \"f\"\nscenarios = [\"a\"]\n";
    let scenario = "name = \"x\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"a\"\nenvironment = \
                    \"host\"\nmeasurement = \"timer\"\n";
    let drawn = |count: usize| {
        let source = Source::new("a.toml", format!("{scenario}{}", figure.repeat(count)));
        super::check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    drawn(MOST_SHOWN).unwrap();
    let said = drawn(MOST_SHOWN + 1).unwrap_err().to_string();
    assert!(said.contains("65 tables [[figure]]: a report shows 64 at most"), "{said}");
}

#[test]
fn there_is_an_end_to_references_and_to_the_threads_of_one() {
    let check = |references: usize, threads: usize| {
        let threads = "[\"1us\", \"2us\", \"3us\"], ".repeat(threads);
        let own = format!("[[reference]]\nscenario = \"a\"\nsource = \"s\"\nthreads = [{threads}]\n");
        let more = "[[reference]]\nscenario = \"a\"\nsource = \"s\"\nmax = \"8us\"\n";
        let text = format!(
            "name = \"x\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"a\"\nenvironment = \
             \"host\"\nmeasurement = \"timer\"\n{own}{}",
            more.repeat(references - 1)
        );
        let source = Source::new("a.toml", text.as_str());
        check(&parse(&source).unwrap(), &source, &Memory::new())
    };
    check(MOST_REFERENCES, MOST_PUBLISHED_THREADS).unwrap();
    let many = check(MOST_REFERENCES + 1, 1).unwrap_err().to_string();
    assert!(many.contains("more than 1024 references"), "{many}");
    let long = check(1, MOST_PUBLISHED_THREADS + 1).unwrap_err().to_string();
    assert!(long.contains("more than 256 threads of one reference"), "{long}");
}
