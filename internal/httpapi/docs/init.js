'use strict';

// Operations of the other listener are out of this page's reach, and Swagger UI shows an answer when it has ended, which
// a stream does not: those cannot be tried out here.
const onlyWhatWorks = () => ({
  statePlugins: {
    spec: {
      wrapSelectors: {
        allowTryItOutFor: (original, system) => (state, path, method) => {
          const item = system.specSelectors.specJson().getIn(['paths', path]);
          return !item.has('servers') && !item.hasIn([method, 'responses', '200', 'content', 'text/event-stream']);
        },
      },
    },
  },
});

window.addEventListener('load', () => {
  window.ui = SwaggerUIBundle({
    url: '/api/v1/openapi.yaml',
    dom_id: '#swagger-ui',
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [onlyWhatWorks],
    layout: 'BaseLayout',
    deepLinking: true,
    validatorUrl: null,
    defaultModelsExpandDepth: 0,
  });
});
