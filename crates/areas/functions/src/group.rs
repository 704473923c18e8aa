//! Declares the group of functions: its area, its log, its job and its ports.

use crate::calls::invoke;
use crate::calls::service::FunctionCalls;
use crate::draft::{operations, publish, versions};
use crate::history::interrupted::end_interrupted;
use crate::history::log::INVOCATION_LOG;
use crate::history::operations as history;
use crate::host::HostServices;
use crate::variables::FunctionVariables;
use jobs::Job;
use model::Result;
use operation::{Domain, Group, Operations, Parts, Services};
use ports::{VariableUsers, WorkspaceFunctions};
use std::sync::Arc;
use std::time::Duration;

/// The group of functions.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Functions>().log(INVOCATION_LOG)), start };

fn start(services: &Services) -> Result<Parts> {
    let host = HostServices {
        db: services.cloned()?,
        connector: services.cloned()?,
        causes: services.cloned()?,
        calls: services.cloned()?,
    };
    let calls = FunctionCalls::new(services.cloned()?, host, services.cloned()?);
    let interrupted = Job::every(
        "functions.interrupted",
        Duration::from_secs(30),
        "ends calls of functions whose process is gone",
        end_interrupted,
    );
    Ok(Parts::default()
        .job(interrupted)
        .service(WorkspaceFunctions::new(calls.clone()))
        .service(calls)
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(FunctionVariables)))
}

/// The area of functions.
pub struct Functions;

impl Domain for Functions {
    const AREA: &'static str = "Functions";
    const ORDER: u16 = 33;
    const DESCRIPTION: &'static str = "Functions are JavaScript that agents call: a draft that you test, and published versions \
         that never change. Each call runs confined, in a process without files and network, and its outside is `ctx`.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListFunctions),
            Box::new(operations::CreateFunction),
            Box::new(operations::GetFunction),
            Box::new(operations::UpdateFunction),
            Box::new(operations::DeleteFunction),
            Box::new(publish::PublishFunction),
            Box::new(invoke::InvokeFunction),
            Box::new(versions::ListFunctionVersions),
            Box::new(versions::RestoreFunctionVersion),
            Box::new(history::ListFunctionInvocations),
            Box::new(history::GetFunctionInvocation),
        ]
    }
}
