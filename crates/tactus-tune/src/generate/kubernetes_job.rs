//! Kubernetes: a job that measures the node on which it runs, and answers in JUnit.

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Generator, Output, Purpose, kubernetes};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "kubernetes-job",
    about: "A Job whose guaranteed pod measures with tactus's image and prints JUnit, as cnf-tests does. Its \
variables are MAXIMUM_LATENCY, in us, and LATENCY_TEST_RUNTIME, in s. It fails if the limit is exceeded, and if \
there is not enough data.",
    purpose: Purpose::Container,
    generate,
};

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let placement = request.placement(2)?;
    let name = format!("{}-latency", request.options.name);
    let file = format!("{name}-job.yaml");
    let notes = [
        format!("`kubectl logs job/{name} > latency.xml` has the result, when the job has ended"),
        "an exceeded limit (1) and not enough data (3) are both failures to Kubernetes: the JUnit shows which it was"
            .to_owned(),
    ];
    Ok(Output {
        files: vec![File {
            belongs: format!("kubectl apply -f {file}"),
            mode: 0o644,
            text: job(request, &name, &file, placement.count()),
            name: file,
        }],
        notes: notes.into_iter().chain(placement.scheduled()).collect(),
    })
}

/// The lines before the pod's annotations; one attempt, because a second one is another measurement.
const HEAD: &str = "spec:
  backoffLimit: 0
  template:
    metadata:
      annotations:
";

/// The measurement. Without lines of progress its log is the JUnit alone; `spin` in place of `timer` is what oslat measures.
const MEASURES: &str = r#"          env:
            - name: MAXIMUM_LATENCY
              value: "100"
            - name: LATENCY_TEST_RUNTIME
              value: "600"
          # spin in place of timer is what oslat measures. The log is the JUnit alone.
          args: [measure, timer, --quiet, --max, "$(MAXIMUM_LATENCY)us", --duration, "$(LATENCY_TEST_RUNTIME)s", --format, junit]
"#;

fn job(request: &GenerateRequest<'_>, name: &str, file: &str, cpus: usize) -> String {
    let mut text = header(
        request,
        Marks::Hash,
        "kubernetes-job",
        &format!("set the image name of your registry, then kubectl apply -f {file}"),
        &format!("kubectl delete job {name}"),
        &[
            "ctr-separation: a pod shares the node's kernel, so the job measures the node as it is tuned.",
            "ctr-rt-budget: if the node's kernel has CONFIG_RT_GROUP_SCHED, a pod may have no real-time budget. The \
job then reports it and measures nothing.",
            "The annotations belong to CRI-O, and work only with OpenShift's runtime class; containerd ignores them.",
        ],
    );
    text += &format!("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n{HEAD}");
    text += &kubernetes::annotations("        ");
    text += "    spec:\n      restartPolicy: Never\n";
    text += &comment("      ", "To choose the node:");
    text += "      # nodeSelector: {kubernetes.io/hostname: NODE}\n";
    text += &comment("      ", "On OpenShift, for the annotations above:");
    text += "      # runtimeClassName: performance-tactus\n      containers:\n        - name: tactus\n";
    text += &format!("          image: localhost/tactus:{}\n{MEASURES}", env!("CARGO_PKG_VERSION"));
    text += &kubernetes::line(
        "          ",
        "ctr-caps-limits",
        "real-time priorities and mlockall. Risk: it can take its CPUs and the memory from all other programs",
        "securityContext:",
    );
    text += "            capabilities:\n              drop: [ALL]\n              add: [SYS_NICE, IPC_LOCK]\n";
    text += &kubernetes::line(
        "          ",
        "ctr-cpuset",
        "requests and limits are equal and CPUs whole: only then the pod is guaranteed and has dedicated CPUs",
        "resources:",
    );
    for part in ["requests", "limits"] {
        text += &format!("            {part}:\n              cpu: \"{cpus}\"\n              memory: 512Mi\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn the_job_of_each_machine() {
        for (name, machine) in three() {
            let machine = machine.planned();
            insta::assert_snapshot!(
                format!("kubernetes_job_{name}"),
                shown(&machine.generate(&ENTRY).unwrap())
            );
        }
    }
}
