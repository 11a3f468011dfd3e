$__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
          AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
          AND $__conditionalAll(app IN (${app:singlequote}), $app)
          AND $__conditionalAll(model IN (${model:singlequote}), $model)
