//! Sets a request ID on every response, including those outside the API.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use model::RequestId;
use operation::Pipeline;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Sets `X-Request-Id` if it is absent.
pub(crate) async fn set(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> actix_web::Result<ServiceResponse<impl MessageBody>> {
    let pipeline = request.app_data::<Data<Pipeline>>().cloned();
    let mut response = next.call(request).await?;
    if let Some(pipeline) = pipeline
        && !response.headers().contains_key(&X_REQUEST_ID)
    {
        let id = RequestId::new(pipeline.db.now(), &*pipeline.db.random());
        response.headers_mut().insert(X_REQUEST_ID, HeaderValue::try_from(id.as_str())?);
    }
    Ok(response)
}
